package driver

import (
	"encoding/base64"
	"fmt"
	"io"
	"strings"
)

// Secret is the value of a key of a volume's secret. Printed in whatever way, it is "[secret]"; string(s) and []byte(s) are the value.
type Secret []byte

// Format prints "[secret]" for every verb.
func (Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, hidden) }

// MarshalText is "[secret]", also in JSON.
func (Secret) MarshalText() ([]byte, error) { return []byte(hidden), nil }

const hidden = "[secret]"

// hide takes secrets out of a text, such as the output of a program that was called with them: as they are, without surrounding white space,
// and in base64.
func hide(text string, secrets map[string]Secret) string {
	for _, secret := range secrets {
		for _, form := range []string{string(secret), strings.TrimSpace(string(secret)), base64.StdEncoding.EncodeToString(secret)} {
			if form != "" {
				text = strings.ReplaceAll(text, form, hidden)
			}
		}
	}
	return text
}
