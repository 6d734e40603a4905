package logfile

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// chunkBytes is the number of bytes that lastLines reads at a time.
const chunkBytes = 256 << 10

// LastLines returns up to count lines from the end of a log. If the log cannot be read, it returns
// no lines.
func LastLines(path string, count int) []string {
	var lines []string
	for _, file := range files(path) {
		more, err := lastLines(file, count-len(lines))
		if err != nil {
			return lines
		}
		lines = slices.Concat(more, lines)
	}
	return lines
}

// files returns the files of a log, newest first.
func files(path string) []string { return []string{path, path + ".1"} }

// lastLines reads a file from its end until it has read count lines. For a file that does not
// exist, it returns no lines.
func lastLines(path string, count int) ([]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) || count <= 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	var content []byte
	// The line before the first newline can be incomplete, so count lines require count+1 newlines.
	for start := info.Size(); start > 0 && bytes.Count(content, []byte("\n")) <= count; {
		chunk := make([]byte, min(chunkBytes, start))
		start -= int64(len(chunk))
		if _, err := file.ReadAt(chunk, start); err != nil {
			return nil, err
		}
		content = slices.Concat(chunk, content)
	}
	text := strings.TrimSuffix(string(content), "\n")
	if text == "" {
		return nil, nil
	}
	lines := strings.Split(text, "\n")
	return lines[max(0, len(lines)-count):], nil
}
