package catalog

import (
	"slices"
	"strings"
)

// squeeze is a name in lower case without spaces, '-' and '_'.
func squeeze(name string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case ' ', '-', '_', '\t':
			return -1
		}
		return r
	}, strings.ToLower(strings.TrimSpace(name)))
}

// deviceKey is the compared form of a device name: squeezed, without leading vendor words.
func deviceKey(name string) string {
	key := squeeze(name)
	for again := true; again; {
		again = false
		for _, word := range [...]string{"nvidia", "ascend", "amd", "huawei", "geforce", "tesla"} {
			if rest, ok := strings.CutPrefix(key, word); ok && rest != "" {
				key, again = rest, true
			}
		}
	}
	return key
}

// separated is a name in lower case in which what stands between two digits (2.5, 2_5, 3-8B) is a dot and every other
// separator is dropped. It keeps opt_1_3b and opt-13b apart, which squeeze does not.
func separated(name string) string {
	lower := strings.ToLower(strings.TrimSpace(name))
	out := make([]byte, 0, len(lower))
	for i := range len(lower) {
		switch c := lower[i]; {
		case c != '.' && c != '_' && c != '-' && c != ' ':
			out = append(out, c)
		case i > 0 && i+1 < len(lower) && digit(lower[i-1]) && digit(lower[i+1]):
			out = append(out, '.')
		}
	}
	return string(out)
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// dotless is a squeezed name without dots, as recipes write 31 for 3.1. Where it is ambiguous it finds nothing.
func dotless(name string) string { return strings.ReplaceAll(squeeze(name), ".", "") }

// lastPart is the name after the last slash; of a torchtune path (torchtune.models.llama3.llama3_8b) after the last dot.
func lastPart(name string) string {
	name = strings.TrimRight(strings.TrimSpace(name), "/\\")
	if strings.HasPrefix(name, "torchtune.") {
		return name[strings.LastIndexByte(name, '.')+1:]
	}
	return name[strings.LastIndexAny(name, "/\\")+1:]
}

// kindWords say how a checkpoint was tuned or stored, or how a builder adapts it. None of them changes the shape.
var kindWords = [...]string{"hf", "base", "instruct", "inst", "chat", "it", "pt", "bf16", "fp16", "fp32", "4bit", "8bit", "bnb", "unsloth", "gptq",
	"awq", "int4", "int8", "nf4", "qat", "quantized", "sft", "dpo", "pretrain", "pretrained", "preview", "thinking", "lora", "qlora", "dora", "model"}

// modelNames gives the forms of a model name to try, from the whole name to what is left without words that do not change
// the shape.
func modelNames(name string) []string {
	last := lastPart(name)
	words := strings.FieldsFunc(strings.ToLower(last), func(r rune) bool { return r == '-' || r == '_' || r == ' ' })
	plain := slices.DeleteFunc(slices.Clone(words), func(word string) bool { return slices.Contains(kindWords[:], word) })
	bare := slices.DeleteFunc(slices.Clone(plain), release)
	names := []string{name, last}
	for _, words := range [][]string{plain, withoutMaker(plain), bare, withoutMaker(bare)} {
		names = append(names, strings.Join(words, "-"))
	}
	return slices.DeleteFunc(names, func(name string) bool { return squeeze(name) == "" })
}

// withoutMaker drops the maker's name in front of a model's (Meta-Llama-3-8B).
func withoutMaker(words []string) []string {
	if len(words) > 1 && words[0] == "meta" {
		return words[1:]
	}
	return words
}

// release reports whether a word is a release (v0.1, v1.5) or a date (2407, 20240115).
func release(word string) bool {
	digits, version := strings.CutPrefix(word, "v")
	if digits == "" || strings.Trim(digits, "0123456789.") != "" {
		return false
	}
	return version || len(digits) == 4 || len(digits) == 8
}

// distance is the edit distance (insertions, deletions, substitutions of bytes) of two names, or limit where it is no less.
func distance(a, b string, limit int) int {
	if d := len(a) - len(b); d >= limit || -d >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		least := row[0]
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, diagonal+1)
			least = min(least, row[j+1])
		}
		if least >= limit {
			return limit
		}
	}
	return min(row[len(b)], limit)
}
