package main

import (
	"fmt"
	"os"
	"strings"
)

// The report stands between these lines of a document.
const (
	beginMarker = "<!-- bench:begin -->\n"
	endMarker   = "<!-- bench:end -->\n"
)

// writeBetweenMarkers replaces what stands between the markers of the file at path.
func writeBetweenMarkers(path, content string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read document: %w", err)
	}
	document, err := replaceBetweenMarkers(string(data), content)
	if err != nil {
		return fmt.Errorf("write tables into %q: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		return fmt.Errorf("write document: %w", err)
	}
	return nil
}

func replaceBetweenMarkers(document, content string) (string, error) {
	before, rest, found := strings.Cut(document, beginMarker)
	if !found {
		return "", fmt.Errorf("it has no line %q", strings.TrimSpace(beginMarker))
	}
	_, after, found := strings.Cut(rest, endMarker)
	if !found {
		return "", fmt.Errorf("it has no line %q after %q", strings.TrimSpace(endMarker), strings.TrimSpace(beginMarker))
	}
	return before + beginMarker + "\n" + content + "\n" + endMarker + after, nil
}
