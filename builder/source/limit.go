package source

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/docker/go-units"
)

// Limit caps the disk space, memory and idle time used to fetch sources. All inputs of one build
// share a Limit.
type Limit struct {
	// Bytes and Files are the maximum total size, in bytes, and the maximum number of the files
	// written.
	Bytes, Files int64
	// Memory is the maximum heap size of this process during a clone, in bytes. 0 means
	// DefaultMemory. The limit is necessary because go-git keeps the server's references and
	// deltified objects in memory.
	Memory uint64
	// SilenceTimeout is the maximum time for which a source may send no data. 0 means
	// DefaultSilenceTimeout.
	SilenceTimeout time.Duration

	bytes, files atomic.Int64
}

// Default values of Limit's fields.
const (
	DefaultBytes          = 8 << 30
	DefaultFiles          = 1_000_000
	DefaultMemory         = 2 << 30
	DefaultSilenceTimeout = 30 * time.Minute
)

// NewLimit returns a Limit with the default values.
func NewLimit() *Limit { return &Limit{Bytes: DefaultBytes, Files: DefaultFiles} }

// addFile counts a file before it is written. It returns an error if the limit is exceeded.
func (l *Limit) addFile() error {
	if l.files.Add(1) > l.Files {
		return fmt.Errorf("the source has more than %d files: remove generated files from it, or split it", l.Files)
	}
	return nil
}

// addBytes counts bytes before they are written. It returns an error if the limit is exceeded.
func (l *Limit) addBytes(n int) error {
	if l.bytes.Add(int64(n)) > l.Bytes {
		return fmt.Errorf("the source is larger than %s: remove generated files from it, or split it", units.BytesSize(float64(l.Bytes)))
	}
	return nil
}

// copy copies the content of a file, within the limit.
func (l *Limit) copy(to io.Writer, from io.Reader) (int64, error) {
	return io.Copy(limitedWriter{to, l}, from)
}

type limitedWriter struct {
	io.Writer
	limit *Limit
}

func (w limitedWriter) Write(p []byte) (int, error) {
	if err := w.limit.addBytes(len(p)); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}
