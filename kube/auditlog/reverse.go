package auditlog

import (
	"bytes"
	"io"
	"os"
)

// chunkSize is the number of bytes in one read. maxLine is the maximum length of a line, in bytes.
// Longer lines are skipped. An event that contains a large object is about 3 MiB long.
const (
	chunkSize = 1 << 20
	maxLine   = 8 << 20
)

// reverse reads the lines of a file from the last to the first.
type reverse struct {
	file *os.File
	// start is the offset of rest. rest is the part of the file that has been read but not yet
	// returned.
	start int64
	rest  []byte
}

func newReverse(file *os.File) (*reverse, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	return &reverse{file: file, start: info.Size()}, nil
}

// next returns the line before the previously returned line, without its line break, or nil at the
// beginning of the file. It skips empty lines.
func (r *reverse) next() ([]byte, error) {
	for {
		if i := bytes.LastIndexByte(r.rest, '\n'); i >= 0 {
			line := r.rest[i+1:]
			r.rest = r.rest[:i]
			if len(line) > 0 {
				return line, nil
			}
			continue
		}
		if r.start == 0 {
			line := r.rest
			r.rest = nil
			if len(line) == 0 {
				return nil, nil
			}
			return line, nil
		}
		if len(r.rest) > maxLine {
			r.rest = nil
		}
		size := min(chunkSize, r.start)
		chunk := make([]byte, size, size+int64(len(r.rest)))
		if _, err := r.file.ReadAt(chunk, r.start-size); err != nil && err != io.EOF {
			return nil, err
		}
		r.start -= size
		r.rest = append(chunk, r.rest...)
	}
}
