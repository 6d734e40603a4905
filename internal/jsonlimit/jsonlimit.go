// Package jsonlimit bounds what JSON from others expands to. An empty object takes three bytes of
// JSON and hundreds of bytes of memory, so a limit of bytes alone is none. The package counts
// values without decoding them.
package jsonlimit

import (
	"fmt"
	"io"
)

// Counter counts the values of JSON that is written to it piece by piece. The zero value counts
// from the beginning of a text.
type Counter struct {
	values           int
	inString, escape bool
}

// Count adds a piece and returns the number of values so far. Each element of an array, member of
// an object, array and object counts; of what is not JSON the number means nothing.
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

// Check returns an error if a text has more values than the limit.
func Check(text []byte, limit int) error {
	if (&Counter{}).Count(text) > limit {
		return exceeded(limit)
	}
	return nil
}

// Reader returns a reader of the same text that fails after the limit of values.
func Reader(text io.Reader, limit int) io.Reader { return &reader{text: text, limit: limit} }

type reader struct {
	text    io.Reader
	limit   int
	counter Counter
}

// Read reads a piece and counts it.
func (r *reader) Read(p []byte) (int, error) {
	n, err := r.text.Read(p)
	if r.counter.Count(p[:n]) > r.limit {
		return 0, exceeded(r.limit)
	}
	return n, err
}

// Error says that JSON has more values than the limit.
type Error struct{ Limit int }

// Error describes the limit.
func (e *Error) Error() string { return fmt.Sprintf("it has more than %d JSON values", e.Limit) }

func exceeded(limit int) error { return &Error{limit} }
