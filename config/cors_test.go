package config

import (
	"regexp"
	"slices"
	"testing"
)

func TestCORSOriginsMatchOnlyWholeHosts(t *testing.T) {
	origins := []string{
		"https://127.0.0.1", "https://127.0.0.1:8443", "https://127.0.0.1.example.org",
		"https://pages.example.com", "https://pages.example.com:8443",
		"https://evil.pages.example.com", "https://pages.example.com.example.org",
	}
	pages := []string{"https://pages.example.com", "https://pages.example.com:8443"}
	tests := []struct {
		name, expression string
		want             []string
	}{
		{"end anchored", `(?i)//127\.0\.0\.1(:|\z)`, []string{"https://127.0.0.1", "https://127.0.0.1:8443"}},
		{"host of OpenShift's first versions", `pages\.example\.com`, pages},
		{"host and port", `127.0.0.1:8443`, []string{"https://127.0.0.1:8443"}},
		{"start anchored", `//pages\.example\.com`, pages},
		{"scheme", `https://pages\.example\.com`, pages},
		{"scheme and group", `^https://(?:pages)\.example\.com`, pages},
		{"both anchored", `^https://.*\.example\.com$`,
			[]string{"https://pages.example.com", "https://evil.pages.example.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := MasterConfig{}
			c.CORSAllowedOrigins = []string{tt.expression}
			allowed := regexp.MustCompile(c.CORSOrigins()[0])
			for _, origin := range origins {
				if got, want := allowed.MatchString(origin), slices.Contains(tt.want, origin); got != want {
					t.Errorf("%s matches %s: %t, want %t", tt.expression, origin, got, want)
				}
			}
		})
	}
}
