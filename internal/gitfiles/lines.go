package gitfiles

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	// maxResponse is the maximum size of the capabilities or references. maxPack is the maximum
	// size of the part of a pack that is read. Both are in bytes.
	maxResponse, maxPack = 1 << 20, 32 << 20
	// maxReference is the maximum length of a reference name, in bytes.
	maxReference = 1 << 10
	// flush ends a message, and delimiter ends a section in a message.
	flush, delimiter = "0000", "0001"
	// lengthSize is the number of digits in a line's length.
	lengthSize = 4
)

// errProtocol means that a response does not follow Git's protocol, or exceeds a limit.
var errProtocol = errors.New("the server's response is not valid, or too large")

// lines reads a response's packet lines.
type lines struct {
	reader *bufio.Reader
	// ended is set if the last line was a flush.
	ended bool
}

func newLines(r io.Reader, limit int64) *lines {
	return &lines{reader: bufio.NewReader(io.LimitReader(r, limit))}
}

// next returns the next line, or nil for a flush or delimiter.
func (l *lines) next() ([]byte, error) {
	digits := make([]byte, lengthSize)
	if _, err := io.ReadFull(l.reader, digits); err != nil {
		return nil, errProtocol
	}
	length, err := strconv.ParseUint(string(digits), 16, 16)
	if err != nil {
		return nil, errProtocol
	}
	l.ended = length == 0
	if length < lengthSize {
		return nil, nil
	}
	line := make([]byte, length-lengthSize)
	if _, err := io.ReadFull(l.reader, line); err != nil {
		return nil, errProtocol
	}
	return line, nil
}

// each calls a function for each line until a flush.
func (l *lines) each(do func(line string) error) error {
	for {
		line, err := l.next()
		if err != nil {
			return err
		}
		if l.ended {
			return nil
		}
		if err := do(strings.TrimSuffix(string(line), "\n")); err != nil {
			return err
		}
	}
}

func writeLine(to *bytes.Buffer, text string) {
	fmt.Fprintf(to, "%04x%s\n", len(text)+lengthSize+1, text)
}

// sideband reads the pack from the packet lines that follow the packfile line.
type sideband struct {
	lines *lines
	rest  []byte
}

// Read implements io.Reader.
func (s *sideband) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		line, err := s.lines.next()
		switch {
		case err != nil:
			return 0, err
		case len(line) == 0:
			return 0, io.EOF
		case line[0] == 1: // channel 1 is data, 2 is progress, and 3 is an error
			s.rest = line[1:]
		case line[0] == 3:
			return 0, errProtocol
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
