package config

import (
	"regexp"
	"slices"
	"testing"
)

func TestOriginsAreWholeHosts(t *testing.T) {
	for expression, want := range map[string][]string{
		`(?i)//127\.0\.0\.1(:|\z)`:         {"https://127.0.0.1", "https://127.0.0.1:8443"},
		`pages\.example\.com`:              {"https://pages.example.com", "https://pages.example.com:8443"}, // as OpenShift's first versions have it
		`127.0.0.1:8443`:                   {"https://127.0.0.1:8443"},
		`//pages\.example\.com`:            {"https://pages.example.com", "https://pages.example.com:8443"},
		`https://pages\.example\.com`:      {"https://pages.example.com", "https://pages.example.com:8443"}, // the colon of a scheme ends no host
		`^https://(?:pages)\.example\.com`: {"https://pages.example.com", "https://pages.example.com:8443"},
		`^https://.*\.example\.com$`:       {"https://pages.example.com", "https://evil.pages.example.com"},
	} {
		c := MasterConfig{}
		c.CORSAllowedOrigins = []string{expression}
		allowed := regexp.MustCompile(c.CORSOrigins()[0])
		for _, origin := range []string{
			"https://127.0.0.1", "https://127.0.0.1:8443", "https://127.0.0.1.example.org", "https://pages.example.com", "https://pages.example.com:8443", "https://evil.pages.example.com",
			"https://pages.example.com.example.org",
		} {
			if got := allowed.MatchString(origin); got != slices.Contains(want, origin) {
				t.Errorf("%s: %s is allowed: %t", expression, origin, got)
			}
		}
	}
}
