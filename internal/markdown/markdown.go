// Package markdown updates generated sections in documents.
package markdown

import (
	"fmt"
	"os"
	"strings"
)

// Section is a generated part of a document between two HTML comments, which are invisible to
// readers. Replacing the content keeps both comments.
type Section struct {
	Begin, End string // the two comment lines, without a line break
}

// Replace returns document with content as the new section. content must end with a line break.
func (s Section) Replace(document, content string) (string, error) {
	before, rest, ok := strings.Cut(document, s.Begin)
	if !ok {
		return "", fmt.Errorf("it has no line %q", s.Begin)
	}
	_, after, ok := strings.Cut(rest, s.End)
	if !ok {
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
	if err := os.WriteFile(path, []byte(updated), 0o644); err != nil { // in place, to keep the owner
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}
