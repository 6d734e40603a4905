package user

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"k8s.io/apimachinery/pkg/api/validation/path"
)

// groupName gives the reasons why a text is no name of a group. The prefix "system:" is of virtual groups.
func groupName(name string, prefix bool) []string {
	reasons := path.ValidatePathSegmentName(name, prefix)
	if strings.HasPrefix(name, "system:") {
		reasons = append(reasons, `must not begin with "system:": those groups are virtual`)
	}
	return append(reasons, readable(name)...)
}

// userName gives the reasons why a text is no name of a user. A colon is in the names of what is no user, such as service accounts.
func userName(name string, prefix bool) []string {
	reasons := path.ValidatePathSegmentName(name, prefix)
	if strings.Contains(name, ":") {
		reasons = append(reasons, `may not contain ":"`)
	}
	return append(reasons, readable(name)...)
}

// readable refuses names that look like another one on a screen, or mean something else in a path.
func readable(name string) (reasons []string) {
	invisible := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if name == "~" {
		reasons = append(reasons, `may not be "~", which is the user who asks`)
	}
	switch {
	case !utf8.ValidString(name):
		reasons = append(reasons, "must be UTF-8")
	case strings.ContainsFunc(name, invisible):
		reasons = append(reasons, "may not contain control characters or invisible ones")
	case !norm.NFC.IsNormalString(name):
		reasons = append(reasons, "must be in Unicode's normal form NFC, so that two names that look the same are the same")
	case name != strings.TrimSpace(name):
		reasons = append(reasons, "may not begin or end with a space")
	}
	if len(name) > maxName {
		reasons = append(reasons, "may not be longer than 253 bytes")
	}
	return reasons
}

// maxName is the longest name of an object, in bytes.
const maxName = 253

// providerName gives the reasons why a text is no name of an identity provider.
func providerName(name string) []string {
	if strings.Contains(name, ":") {
		return append(readable(name), `may not contain ":"`)
	}
	return append(path.IsValidPathSegmentName(name), readable(name)...)
}

// identityName gives the reasons why a text is no name of an identity, `<provider>:<user name at the provider>`.
func identityName(name string, prefix bool) []string {
	reasons := path.ValidatePathSegmentName(name, prefix)
	provider, user, ok := strings.Cut(name, ":")
	if !ok || provider == "" || user == "" {
		reasons = append(reasons, "must be <provider name>:<user name at the provider>")
	}
	if len(name) > maxName {
		reasons = append(reasons, "may not be longer than 253 bytes")
	}
	return reasons
}
