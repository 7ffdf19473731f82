package faultfs

import (
	"io/fs"

	"github.com/phux-agent/phux-agent/internal/atomicfile"
)

// NoSync is the real file system without waiting for the disk, for tests that write much.
var NoSync atomicfile.FS = noSync{atomicfile.System}

type noSync struct{ atomicfile.FS }

func (noSync) SyncDir(string) error { return nil }

func (n noSync) OpenFile(name string, flag int, perm fs.FileMode) (atomicfile.File, error) {
	f, err := n.FS.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return noSyncFile{f}, nil
}

type noSyncFile struct{ atomicfile.File }

func (noSyncFile) Sync() error { return nil }
