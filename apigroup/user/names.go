package user

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"k8s.io/apimachinery/pkg/api/validate/content"

	"github.com/slipway-platform/slipway/apiserver"
)

// groupName returns the reasons why a group name is invalid. Names that begin with "system:" are
// reserved for virtual groups.
func groupName(name string, prefix bool) []string {
	reasons := apiserver.ValidPathSegment(name, prefix)
	if strings.HasPrefix(name, "system:") {
		reasons = append(reasons, `must not begin with "system:": those groups are virtual`)
	}
	return append(reasons, readable(name)...)
}

// userName returns the reasons why a user name is invalid. Names that contain a colon are reserved
// for service accounts and other virtual users.
func userName(name string, prefix bool) []string {
	reasons := apiserver.ValidPathSegment(name, prefix)
	if strings.Contains(name, ":") {
		reasons = append(reasons, `may not contain ":"`)
	}
	return append(reasons, readable(name)...)
}

// readable returns the reasons why a name could be mistaken for another name or would have a
// special meaning in a path.
func readable(name string) (reasons []string) {
	invisible := func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) }
	if name == "~" {
		reasons = append(reasons, `may not be "~", which means the user of the request`)
	}
	switch {
	case !utf8.ValidString(name):
		reasons = append(reasons, "must be UTF-8")
	case strings.ContainsFunc(name, invisible):
		reasons = append(reasons, "may not contain control or invisible characters")
	case !norm.NFC.IsNormalString(name):
		reasons = append(reasons, "must be in Unicode's normal form NFC, because different names must look different")
	case name != strings.TrimSpace(name):
		reasons = append(reasons, "may not begin or end with a space")
	}
	if len(name) > maxName {
		reasons = append(reasons, "may not be longer than 253 bytes")
	}
	return reasons
}

// maxName is the maximum length of an object's name, in bytes.
const maxName = 253

// providerName returns the reasons why an identity provider's name is invalid.
func providerName(name string) []string {
	if strings.Contains(name, ":") {
		return append(readable(name), `may not contain ":"`)
	}
	return append(content.IsPathSegmentName(name), readable(name)...)
}

// identityName returns the reasons why an identity's name, `<provider>:<user name at the
// provider>`, is invalid.
func identityName(name string, prefix bool) []string {
	reasons := apiserver.ValidPathSegment(name, prefix)
	provider, user, ok := strings.Cut(name, ":")
	if !ok || provider == "" || user == "" {
		reasons = append(reasons, "must be <provider name>:<user name at the provider>")
	}
	if len(name) > maxName {
		reasons = append(reasons, "may not be longer than 253 bytes")
	}
	return reasons
}
