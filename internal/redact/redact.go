// Package redact removes secrets from text that users see: logs, errors, and printed
// configurations.
package redact

import (
	"io"
	"regexp"
)

// Mark is the text that replaces a secret.
const Mark = "<redacted>"

// password matches a URL's password anywhere in text, up to the last "@" before a space or quote.
// An unescaped password can contain "@" and "/".
var password = regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]*://[^\\s/?#:@\"'`]*):([^\\s\"'`]*)@")

// port matches a port after a host name, so that Text does not mistake it for a password.
var port = regexp.MustCompile(`^[0-9]{1,5}/`)

// privateKey matches a PEM block with a private key.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// Text replaces private keys and URL passwords in text.
func Text(text string) string {
	text = password.ReplaceAllStringFunc(text, func(match string) string {
		parts := password.FindStringSubmatch(match)
		if port.MatchString(parts[2]) {
			return match
		}
		return parts[1] + ":" + Mark + "@"
	})
	return privateKey.ReplaceAllString(text, Mark)
}

// Writer returns a writer that applies Text to each write. It does not find secrets that are split
// across writes, so each write must be a whole line, as in the packages log and log/slog.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ io.Writer }

// Write redacts and writes a line.
func (w writer) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
