package flexvolume

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// redactor replaces secrets in text that a driver printed. It knows each value as it is, without surrounding white space,
// line by line, in base64 with either alphabet and with or without padding, and as it is escaped in JSON.
func redactor(secrets map[string][]byte) func(string) string {
	forms := map[string]bool{}
	for _, value := range secrets {
		text := string(value)
		raw := []string{text, strings.TrimSpace(text)}
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); len(line) >= minSecretLine {
				raw = append(raw, line)
			}
		}
		for _, form := range raw {
			forms[form] = true
			forms[base64.RawStdEncoding.EncodeToString([]byte(form))] = true
			forms[base64.RawURLEncoding.EncodeToString([]byte(form))] = true
			if escaped, err := json.Marshal(form); err == nil {
				forms[string(escaped[1:len(escaped)-1])] = true
			}
		}
	}
	delete(forms, "")
	if len(forms) == 0 {
		return func(text string) string { return text }
	}
	// The longest first, so that a form which is part of another leaves no rest of it.
	ordered := slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range ordered {
		pairs = append(pairs, form, "[secret]")
	}
	return strings.NewReplacer(pairs...).Replace
}

// minSecretLine keeps short lines of a long secret, such as a brace, from being taken out of every text.
const minSecretLine = 4
