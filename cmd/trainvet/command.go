package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trainvet/trainvet/configs"
	"github.com/trainvet/trainvet/lint/source"
)

// commandName is what findings call the launch command on our own command line.
const commandName = "<command>.sh"

// commandFile is a launch command as a script of one line.
func commandFile(words []string) *source.File {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = shellQuote(word)
	}
	text := []byte(strings.Join(quoted, " ") + "\n")
	return &source.File{Path: commandName, Kind: source.Shell, Text: text, Raw: text}
}

// shellQuote writes a word so that a shell reads it as it is.
func shellQuote(word string) string {
	plain := func(r rune) bool {
		return r < 0x80 && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_-./=:,@%+", r))
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// recognised fails for a command of which nothing would be checked.
func recognised(words []string) error {
	switch {
	case len(words) == 0:
		return usagef("no launch command follows --")
	case len(configs.ParseShell(commandFile(words)).Commands) == 0 && len(filesIn(words)) == 0:
		return usagef("%s: is no launch command and names no script that is there", strings.Join(words, " "))
	}
	return nil
}

// filesIn are the files that a command names, as words or as values of flags. The program itself is one only where its name says
// that it is a script.
func filesIn(words []string) []string {
	var files []string
	for i, word := range words {
		if i == 0 && source.KindOf(word, nil) == source.Other {
			continue
		}
		if _, value, ok := strings.Cut(word, "="); ok && strings.HasPrefix(word, "-") {
			word = value
		}
		if info, err := os.Stat(filepath.FromSlash(word)); err == nil && info.Mode().IsRegular() && !slices.Contains(files, word) {
			files = append(files, word)
		}
	}
	return files
}
