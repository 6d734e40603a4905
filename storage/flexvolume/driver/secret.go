package driver

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// Secret is a value in the volume's secret. It always prints as "[secret]". Use string(s) or
// []byte(s) to get the value.
type Secret []byte

// Format prints "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// MarshalText returns "[secret]", which is also used in JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

const redacted = "[secret]"

// redact removes secrets from text, such as the output of a program that received them as
// arguments. It matches each value verbatim, trimmed, and in base64.
func redact(text string, secrets map[string]Secret) string {
	for _, secret := range secrets {
		for _, form := range []string{string(secret), strings.TrimSpace(string(secret)), base64.StdEncoding.EncodeToString(secret)} {
			if form != "" {
				text = strings.ReplaceAll(text, form, redacted)
			}
		}
	}
	return text
}
