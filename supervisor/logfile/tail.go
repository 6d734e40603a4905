package logfile

import (
	"io"
	"os"
	"strings"
)

// tailBytes is the part of a file in which LastLines looks for lines.
const tailBytes = 256 << 10

// LastLines returns up to count lines from the end of a file; none if the file cannot be read.
func LastLines(path string, count int) []string {
	file, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.Size() > tailBytes {
		if _, err := file.Seek(-tailBytes, io.SeekEnd); err != nil {
			return nil
		}
	}
	content, err := io.ReadAll(file)
	if err != nil {
		return nil
	}
	lines := strings.Split(strings.TrimRight(string(content), "\n"), "\n")
	return lines[max(0, len(lines)-count):]
}
