package flexvolume

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// redactor returns a function that replaces secrets in driver output. It matches each value
// verbatim, trimmed, line by line, in base64 (standard and URL alphabet, with and without padding),
// and as escaped in JSON.
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
	// Replace longer forms first, because a long form can contain a shorter one.
	byLength := slices.SortedFunc(maps.Keys(forms), func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, form := range byLength {
		pairs = append(pairs, form, "[secret]")
	}
	return strings.NewReplacer(pairs...).Replace
}

// longSecrets returns the secrets that are too long to appear in output by chance.
func longSecrets(secrets map[string][]byte) map[string][]byte {
	const minBytes = 8
	long := maps.Clone(secrets)
	maps.DeleteFunc(long, func(_ string, value []byte) bool { return len(value) < minBytes })
	return long
}

// minSecretLine is the minimum length of a line of a multi-line secret that is redacted, in bytes.
// It excludes short lines, such as a brace, which would match everywhere.
const minSecretLine = 4
