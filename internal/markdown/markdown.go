// Package markdown keeps the parts of documents that programs write.
package markdown

import (
	"fmt"
	"os"
	"strings"
)

// Section is a part of a document that a program writes, between two lines that readers do not see: comments of
// HTML. The lines themselves stay.
type Section struct {
	Begin, End string // the lines, without a line break
}

// Replace returns the document with content, which ends with a line break, as the section.
func (s Section) Replace(document, content string) (string, error) {
	before, rest, found := strings.Cut(document, s.Begin)
	if !found {
		return "", fmt.Errorf("it has no line %q", s.Begin)
	}
	_, after, found := strings.Cut(rest, s.End)
	if !found {
		return "", fmt.Errorf("it has no line %q below %q", s.End, s.Begin)
	}
	return before + s.Begin + "\n\n" + content + "\n" + s.End + after, nil
}

// Write replaces the section in the file at path.
func (s Section) Write(path, content string) error {
	document, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	updated, err := s.Replace(string(document), content)
	if err != nil {
		return fmt.Errorf("write into document %q: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(updated), 0o644); err != nil { // in place, so that its owner stays
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
