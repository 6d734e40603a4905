// Package redact takes secrets out of texts that people read: logs, errors, printed configurations.
package redact

import (
	"io"
	"regexp"
)

// Mark takes the place of a secret.
const Mark = "<redacted>"

// password finds the password of a URL wherever the URL stands in a text. It goes to the last "@" before a space or a
// quote, because a password that nobody escaped may contain "@" and "/" itself.
var password = regexp.MustCompile("([A-Za-z][A-Za-z0-9+.-]*://[^\\s/?#:@\"'`]*):([^\\s\"'`]*)@")

// port matches what follows a host name instead.
var port = regexp.MustCompile(`^[0-9]{1,5}/`)

// privateKey finds a PEM block with a private key.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// Text returns a text without the passwords of the URLs in it and without private keys.
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

// Writer returns a writer that passes each write on as Text. A secret that is split between two writes remains, so
// each write must be a whole line, as those of the packages log and log/slog are.
func Writer(w io.Writer) io.Writer { return writer{w} }

type writer struct{ io.Writer }

// Write writes a line.
func (w writer) Write(line []byte) (int, error) {
	if _, err := io.WriteString(w.Writer, Text(string(line))); err != nil {
		return 0, err
	}
	return len(line), nil
}
