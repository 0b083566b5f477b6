//go:build unix

package check

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a file the owner and group of another, as far as that is allowed.
func keepOwner(name string, like fs.FileInfo) {
	owner, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if os.Chown(name, int(owner.Uid), int(owner.Gid)) != nil {
		_ = os.Chown(name, -1, int(owner.Gid)) // only root gives files away
	}
}
