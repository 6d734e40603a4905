package source

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/docker/go-units"
)

// Limit bounds what a source may take of the disk and of memory, and how long nothing may come of it. It is used up by everything that is written of one build's
// source.
type Limit struct {
	// Bytes and Files are what may be written.
	Bytes, Files int64
	// Memory is what this process may hold, in bytes, while a repository is cloned; 0 means DefaultMemory. What servers tell of their references, and objects that
	// are given as differences, are read into memory.
	Memory uint64
	// Silence is how long a source may stand still; 0 means DefaultSilence.
	Silence time.Duration

	bytes, files atomic.Int64
}

// Defaults of Limit.
const (
	DefaultBytes   = 8 << 30
	DefaultFiles   = 1_000_000
	DefaultMemory  = 2 << 30
	DefaultSilence = 30 * time.Minute
)

// NewLimit is a limit with the defaults.
func NewLimit() *Limit { return &Limit{Bytes: DefaultBytes, Files: DefaultFiles} }

// file counts one more file.
func (l *Limit) file() error {
	if l.files.Add(1) > l.Files {
		return fmt.Errorf("the source has more than %d files: build from less, or leave out what is made from it", l.Files)
	}
	return nil
}

// grow counts bytes that are about to be written.
func (l *Limit) grow(n int) error {
	if l.bytes.Add(int64(n)) > l.Bytes {
		return fmt.Errorf("the source is larger than %s: build from less, or leave out what is made from it", units.BytesSize(float64(l.Bytes)))
	}
	return nil
}

// limited is a writer that the limit holds for.
type limited struct {
	io.Writer
	limit *Limit
}

func (w limited) Write(p []byte) (int, error) {
	if err := w.limit.grow(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
