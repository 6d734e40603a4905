// Package redirect validates the path that a browser is redirected to after a login.
package redirect

import (
	"net/url"
	"strings"
)

// Local returns then, the requested target, if it is a path on this server that is safe for a
// redirect. Otherwise, it returns fallback.
func Local(then, fallback string) string {
	bad := func(c rune) bool { return c < ' ' || c == '\\' || c == 0x7f }
	if !strings.HasPrefix(then, "/") || strings.HasPrefix(then, "//") || strings.ContainsFunc(then, bad) {
		return fallback
	}
	if u, err := url.Parse(then); err != nil || u.Host != "" || u.Scheme != "" {
		return fallback
	}
	return then
}
