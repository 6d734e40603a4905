package reload

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// fileState identifies the state of a file, so that changes can be detected. It is zero if the file
// does not exist.
type fileState struct {
	inode    uint64
	size     int64
	modified time.Time
}

func stateOf(files []string) []fileState {
	states := make([]fileState, len(files))
	for i, file := range files {
		info, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		states[i].size = -1 // the file exists, but its state is unknown
		if err == nil {
			states[i] = fileState{size: info.Size(), modified: info.ModTime()}
			if system, ok := info.Sys().(*syscall.Stat_t); ok {
				states[i].inode = system.Ino
			}
		}
	}
	return states
}
