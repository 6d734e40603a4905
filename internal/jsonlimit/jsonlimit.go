// Package jsonlimit limits the number of values in untrusted JSON. An empty object takes three
// bytes of JSON but hundreds of bytes of memory, so a limit in bytes is not sufficient. The package
// counts values without decoding them.
package jsonlimit

import (
	"fmt"
	"io"
)

// Counter counts the values in JSON that it receives in pieces. The zero value is ready for use.
type Counter struct {
	values           int
	inString, escape bool
}

// Count adds a piece and returns the number of values so far. It counts each array element and each
// object member, as well as each array and object itself. The number is meaningless for input that
// is not JSON.
func (c *Counter) Count(piece []byte) int {
	for _, b := range piece {
		switch {
		case c.escape:
			c.escape = false
		case c.inString && b == '\\':
			c.escape = true
		case b == '"':
			c.inString = !c.inString
		case c.inString:
		case b == '{', b == '[', b == ',':
			c.values++
		}
	}
	return c.values
}

// Check returns an error if the number of values in text exceeds limit.
func Check(text []byte, limit int) error {
	if (&Counter{}).Count(text) > limit {
		return exceeded(limit)
	}
	return nil
}

// Reader returns a reader for text. The reader fails when the number of values exceeds limit.
func Reader(text io.Reader, limit int) io.Reader { return &reader{text: text, limit: limit} }

type reader struct {
	text    io.Reader
	limit   int
	counter Counter
}

// Read implements io.Reader. It counts the values in each piece that it reads.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.text.Read(p)
	if r.counter.Count(p[:n]) > r.limit {
		return 0, exceeded(r.limit)
	}
	return n, err
}

// Error is returned if JSON contains more values than the limit.
type Error struct{ Limit int }

// Error describes the limit.
func (e *Error) Error() string { return fmt.Sprintf("it has more than %d JSON values", e.Limit) }

func exceeded(limit int) error { return &Error{limit} }
