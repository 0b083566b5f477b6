package source

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"
)

// Error says why the bytes of a file cannot be read as text.
type Error struct {
	Path   string
	Reason string
}

func (e *Error) Error() string { return e.Path + ": " + e.Reason }

var (
	bom    = []byte("\xEF\xBB\xBF")
	coding = Pattern(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)
)

// Decode makes a File of the bytes of a file. A byte order mark is dropped, a Python coding cookie is honoured (UTF-8,
// ASCII and Latin-1; any other encoding is an error), and what is not valid text is an *Error.
func Decode(name string, kind Kind, raw []byte) (*File, error) {
	fail := func(format string, args ...any) (*File, error) {
		return nil, &Error{name, fmt.Sprintf(format, args...)}
	}
	if len(raw) > MaxSize {
		return fail("larger than %d MB, not read", MaxSize>>20)
	}
	if limit := maxText(kind); kind != Notebook && len(raw) > limit {
		return fail("larger than %d MB, not read", limit>>20)
	}
	if bytes.HasPrefix(raw, []byte("\xFF\xFE")) || bytes.HasPrefix(raw, []byte("\xFE\xFF")) {
		return fail("is UTF-16; save it as UTF-8")
	}
	file := &File{Path: name, Kind: kind, Raw: raw, Text: raw}
	if bytes.HasPrefix(raw, bom) {
		file.Text = raw[len(bom):]
		file.Segments = []Segment{{Text: Span{0, uint32(len(file.Text))}, Raw: Span{uint32(len(bom)), uint32(len(raw))}}}
	}
	if kind == Python {
		switch encoding := cookie(file.Text); encoding {
		case "", "utf-8", "ascii":
		case "latin-1":
			if len(file.Segments) > 0 {
				return fail("has a UTF-8 byte order mark and declares %s", encoding)
			}
			return latin1(file), nil
		default:
			return fail("declares the encoding %s; trainvet reads UTF-8, ASCII and Latin-1", encoding)
		}
	}
	if at := bytes.IndexByte(file.Text, 0); at >= 0 {
		return fail("line %d: holds a NUL byte, so it is no text", 1+bytes.Count(file.Text[:at], []byte("\n")))
	}
	if !utf8.Valid(file.Text) {
		at := 0
		for at < len(file.Text) {
			r, size := utf8.DecodeRune(file.Text[at:])
			if r == utf8.RuneError && size == 1 {
				break
			}
			at += size
		}
		return fail("line %d: is not valid UTF-8", 1+bytes.Count(file.Text[:at], []byte("\n")))
	}
	if kind == Notebook {
		return notebook(file)
	}
	return file, nil
}

// cookie is the normalised encoding that one of the first two lines declares (PEP 263), or "".
func cookie(text []byte) string {
	for range 2 {
		line := text
		if end := bytes.IndexAny(text, "\r\n"); end >= 0 {
			line = text[:end]
			text = bytes.TrimPrefix(text[end:], []byte("\r"))
			text = bytes.TrimPrefix(text, []byte("\n"))
		} else {
			text = nil
		}
		if match := coding().FindSubmatch(line); match != nil {
			return normalise(string(match[1]))
		}
		if code := bytes.TrimLeft(line, " \t\f"); len(code) > 0 && code[0] != '#' {
			return ""
		}
	}
	return ""
}

func normalise(encoding string) string {
	encoding = strings.ReplaceAll(strings.ToLower(encoding), "_", "-")
	switch {
	case encoding == "utf-8", encoding == "utf8", strings.HasPrefix(encoding, "utf-8-"), encoding == "u8":
		return "utf-8"
	case encoding == "ascii", encoding == "us-ascii":
		return "ascii"
	case encoding == "latin-1", encoding == "latin1", encoding == "iso-8859-1", encoding == "iso-latin-1", encoding == "l1", encoding == "iso8859-1",
		strings.HasPrefix(encoding, "latin-1-"), strings.HasPrefix(encoding, "iso-8859-1-"):
		return "latin-1"
	}
	return encoding
}

// latin1 recodes the bytes, one rune a byte.
func latin1(file *File) *File {
	text := make([]byte, 0, len(file.Raw)+len(file.Raw)/8)
	for _, b := range file.Raw {
		text = utf8.AppendRune(text, rune(b))
	}
	file.Text, file.Latin1 = text, true
	file.Segments = []Segment{{Text: Span{0, uint32(len(text))}, Raw: Span{0, uint32(len(file.Raw))}}}
	return file
}

// KindOf guesses a file's kind from its name, and from its first line where the name has no extension.
// head is the beginning of the content, or nil.
func KindOf(name string, head []byte) Kind {
	if kind := kindOfName(name); kind != Other {
		return kind
	}
	switch strings.ToLower(path.Ext(name)) {
	case ".py", ".pyi", ".pyw":
		return Python
	case ".ipynb":
		return Notebook
	case ".json", ".jsonc", ".json5", ".hjson":
		return JSON
	case ".yaml", ".yml":
		return YAML
	case ".toml":
		return TOML
	case ".sh", ".bash", ".zsh", ".ksh", ".sbatch", ".slurm", ".pbs", ".lsf":
		return Shell
	case "":
	default:
		return Other
	}
	if line, _, _ := bytes.Cut(head, []byte("\n")); bytes.HasPrefix(line, []byte("#!")) {
		switch words := string(line); {
		case strings.Contains(words, "python"):
			return Python
		case strings.Contains(words, "sh"):
			return Shell
		}
	}
	return Other
}

var (
	requirementsName = Pattern(`^(?:.*[-_.])?(?:requirements?|constraints)(?:[-_.].*)?\.(?:txt|in)$`)
	dockerfileName   = Pattern(`^(?:.*[-_.])?(?:dockerfile|containerfile)(?:[-_.][a-z0-9_-]+)*$`)
)

// kindOfName knows files by their whole names, whatever they end in.
func kindOfName(name string) Kind {
	base := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	list := strings.HasSuffix(base, ".txt") || strings.HasSuffix(base, ".in")
	switch {
	case base == "setup.cfg", list && requirementsName().MatchString(base):
		return Requirements
	case strings.HasSuffix(base, ".txt") && strings.EqualFold(path.Base(path.Dir(name)), "requirements"):
		return Requirements
	case base == "pipfile":
		return TOML
	case base == ".deepspeed_env":
		return Shell
	}
	if strings.Contains(base, "erfile") && dockerfileName().MatchString(base) {
		switch path.Ext(base) {
		case ".py", ".sh", ".md", ".txt", ".rst", ".jinja", ".j2", ".in", ".tmpl", ".template", ".yaml", ".yml", ".json", ".toml", ".dockerignore", ".ipynb", ".html":
		default:
			return Dockerfile
		}
	}
	return Other
}
