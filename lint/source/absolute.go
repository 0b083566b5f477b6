package source

import (
	"path"
	"path/filepath"
)

// IsAbsolute reports whether a name with forward slashes starts at the root of a file system or, on Windows, names a drive. On other
// systems `a:b` is a name like any other.
func IsAbsolute(name string) bool {
	return path.IsAbs(name) || filepath.VolumeName(filepath.FromSlash(name)) != ""
}
