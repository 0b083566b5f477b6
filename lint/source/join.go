package source

import (
	"path"
	"strings"
)

// Clean is path.Clean, at once for a name that is clean already, as most are.
func Clean(name string) string {
	if isClean(name) {
		return name
	}
	return path.Clean(name)
}

// Join is path.Join of a folder and a name in it, at once where both are clean.
func Join(folder, name string) string {
	if isClean(folder) && isClean(name) && name[0] != '/' {
		return folder + "/" + name
	}
	return path.Join(folder, name)
}

// Dir is path.Dir, at once for a name that is clean.
func Dir(name string) string {
	if at := strings.LastIndexByte(name, '/'); at > 0 && isClean(name[:at]) {
		return name[:at]
	}
	return path.Dir(name)
}

// isClean reports whether a name is certainly as path.Clean leaves it: no part of it is empty, "." or begins with two dots, and it is no
// root.
func isClean(name string) bool {
	for at := 0; at < len(name); {
		end := strings.IndexByte(name[at:], '/')
		switch {
		case end < 0:
			end = len(name) - at
		case at+end == len(name)-1, end == 0 && at > 0: // a slash at the end, or after another
			return false
		}
		if end > 0 && name[at] == '.' && (end == 1 || name[at+1] == '.') {
			return false
		}
		at += end + 1
	}
	return name != ""
}
