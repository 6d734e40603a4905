package redirect

import "testing"

func TestOnlyPathsOfThisServerAreTargets(t *testing.T) {
	for then, want := range map[string]string{
		"/oauth/authorize?client_id=a": "/oauth/authorize?client_id=a",
		"/%2f/evil.org":                "/%2f/evil.org",
		"":                             "/home",
		"page":                         "/home",
		"//evil.org/":                  "/home",
		"//evil.org":                   "/home",
		"/\\evil.org":                  "/home",
		"/\t/evil.org":                 "/home",
		"/\r\nSet-Cookie: a":           "/home",
		"https://evil.org":             "/home",
		"javascript:alert(1)":          "/home",
		"/\x7f":                        "/home",
		"/%zz":                         "/home",
	} {
		if got := Local(then, "/home"); got != want {
			t.Errorf("Local(%q) is %q, want %q", then, got, want)
		}
	}
}
