//go:build linux || darwin || freebsd || netbsd

package workspace

import (
	"io/fs"
	"syscall"
)

// stampOf is the stamp of a file.
func stampOf(info fs.FileInfo) Stamp {
	stamp := plainStamp(info)
	if more, ok := info.Sys().(*syscall.Stat_t); ok {
		stamp.Node, stamp.Changed = int64(more.Ino), syscall.TimespecToNsec(changed(more))
	}
	return stamp
}
