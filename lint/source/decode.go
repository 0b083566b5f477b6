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
	Path   string // "" where the caller names the file
	Reason string
	Cause  Cause
}

func (e *Error) Error() string {
	if e.Path == "" {
		return e.Reason
	}
	return e.Path + ": " + e.Reason
}

// Cause is the kind of an Error.
type Cause uint8

// What keeps a file from being read.
const (
	NotText  Cause = iota // its bytes are not text, or text in an encoding that is not read
	TooLarge              // it is beyond a bound
)

var (
	bom    = []byte("\xEF\xBB\xBF")
	coding = Pattern(`^[ \t\f]*#.*?coding[:=][ \t]*([-_.a-zA-Z0-9]+)`)
)

// KindWindow is how many of its first bytes tell the kind of a file.
const KindWindow = 128

// New is Decode for a file whose kind its name tells, or its first line.
func New(name string, raw []byte) (*File, error) {
	return Decode(name, KindOf(name, raw[:min(len(raw), KindWindow)]), raw)
}

// Decode makes a File of the bytes of a file. A byte order mark is dropped, a Python coding cookie is honoured, and what is not valid text
// is an *Error. UTF-8, ASCII and Latin-1 are read as they are. Of other encodings that hold ASCII as it is, code is read, and characters
// beyond it stand for themselves under other names: nobody looks at them. What holds ASCII otherwise (UTF-16, UTF-7) is an error.
// The bytes are the File's from then on, up to their capacity: with Padding zero bytes of room its text need not be copied to be parsed.
func Decode(name string, kind Kind, raw []byte) (*File, error) {
	fail := func(format string, args ...any) (*File, error) {
		return nil, &Error{Path: name, Reason: fmt.Sprintf(format, args...)}
	}
	limit := maxText(kind)
	if kind == Notebook { // that bounds the code in it
		limit = MaxSize
	}
	if len(raw) > limit {
		return nil, &Error{name, fmt.Sprintf("larger than %d MB, not read", limit>>20), TooLarge}
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
		default:
			width := widthOf(encoding)
			if width == 0 {
				return fail("declares the encoding %s, which trainvet does not read; save it as UTF-8", encoding)
			}
			if len(file.Segments) > 0 {
				return fail("has a UTF-8 byte order mark and declares %s", encoding)
			}
			return recoded(file, width == 2), nil
		}
	}
	if at := bytes.IndexByte(file.Text, 0); at >= 0 {
		return fail("line %d: holds a NUL byte, so it is no text", 1+bytes.Count(file.Text[:at], []byte("\n")))
	}
	if !utf8.Valid(file.Text) {
		if (kind == Shell || kind == Dockerfile) && len(file.Segments) == 0 { // a shell reads bytes, and what is not ASCII in them stands for itself
			return recoded(file, false), nil
		}
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
	if kind == Python && bytes.HasPrefix(file.Text, databricksHead) {
		file.databricks()
		return file, nil
	}
	file.pad()
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

// widthOf is how many bytes at most a rune is made of that begins with a byte beyond ASCII: 1, or 2 where the second may look like ASCII. In
// encodings of several bytes that are all beyond ASCII (EUC) each may be taken for itself. 0: ASCII is not itself, or the name is not known.
func widthOf(encoding string) int {
	if encoding == "latin-1" {
		return 1
	}
	for _, one := range []string{"iso-8859-", "iso8859-", "latin", "cp125", "windows-125", "koi8-", "mac", "cp437", "cp85", "cp86", "euc-", "eucjp", "euckr", "ujis", "ks-c-5601", "ksc5601", "tis-620", "viscii"} {
		if strings.HasPrefix(encoding, one) {
			return 1
		}
	}
	for _, two := range []string{"gb", "cp936", "936", "ms936", "chinese", "big5", "cp950", "950", "ms950", "shift-jis", "shiftjis", "sjis", "s-jis", "cp932", "932", "ms932", "ms-kanji", "cp949", "949", "ms949", "uhc"} {
		if strings.HasPrefix(encoding, two) {
			return 2
		}
	}
	return 0
}

// The runes that stand for two bytes: letters, so that names stay names, one for each pair.
const (
	firstPair  = 0x3400
	leadBytes  = 0x81 // the first byte of a pair is this or more
	trailBytes = 0x30 // and so the second; GB 18030 has pairs of pairs
	trails     = 0xFF - trailBytes
)

// recoded makes a rune of each byte, or of two where the encoding has pairs.
func recoded(file *File, pairs bool) *File {
	raw := file.Raw
	text := make([]byte, 0, len(raw)+len(raw)/8)
	for i := 0; i < len(raw); i++ {
		b := raw[i]
		if pairs && b >= leadBytes && b < 0xFF && i+1 < len(raw) && raw[i+1] >= trailBytes && raw[i+1] < 0xFF {
			text = utf8.AppendRune(text, firstPair+rune(b-leadBytes)*trails+rune(raw[i+1]-trailBytes))
			i++
			continue
		}
		text = utf8.AppendRune(text, rune(b))
	}
	file.Text, file.Latin1, file.pairs = text, true, pairs
	file.Segments = []Segment{{Text: Span{0, uint32(len(text))}, Raw: Span{0, uint32(len(raw))}}}
	return file
}

// Encode gives the bytes that text of a recoded file stands for; ok is false where its encoding has no such character.
func (f *File) Encode(text string) (raw []byte, ok bool) {
	raw = make([]byte, 0, len(text))
	for _, r := range text {
		switch {
		case r <= 0xFF:
			raw = append(raw, byte(r))
		case f.pairs && r >= firstPair && r < firstPair+(0xFF-leadBytes)*trails:
			r -= firstPair
			raw = append(raw, byte(r/trails)+leadBytes, byte(r%trails)+trailBytes)
		default:
			return nil, false
		}
	}
	return raw, true
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
