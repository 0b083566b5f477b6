//go:build !linux && !darwin && !freebsd && !netbsd

package workspace

import "io/fs"

// stampOf is the stamp of a file.
func stampOf(info fs.FileInfo) Stamp { return plainStamp(info) }
