package token

import (
	"strings"
	"testing"
)

func TestNameOfObjectIsDerivedFromSecret(t *testing.T) {
	seen := map[string]bool{}
	for range 100 {
		secret, name := New()
		match, ok := Name(secret)
		if !ok || match != name || seen[secret] {
			t.Fatalf("the name of a secret is %q, %v, want %q; seen before: %v", match, ok, name, seen[secret])
		}
		seen[secret] = true
		if strings.Contains(name, strings.TrimPrefix(secret, prefix)) {
			t.Fatal("the name of the object contains the secret")
		}
		if other, ok := Name(name); ok && other == name {
			t.Fatal("the name of the object is itself a token")
		}
	}
}

func TestInvalidTokensAreNotLookedUp(t *testing.T) {
	secret, _ := New()
	for name, text := range map[string]string{
		"empty":                      "",
		"short":                      "abc",
		"a path":                     strings.Repeat("a", 40) + "/status",
		"a part":                     secret[:len(secret)-1],
		"longer":                     secret + "A",
		"not base64":                 prefix + strings.Repeat("!", encodedLength),
		"a kilobyte":                 strings.Repeat("x", 1024),
		"a hash with another prefix": strings.Repeat("a", 40) + "~b",
	} {
		if match, ok := Name(text); ok {
			t.Errorf("%s: interpreted as the token %q", name, match)
		}
	}
	if name, ok := Name(strings.Repeat("a", MinLength)); !ok || name != strings.Repeat("a", MinLength) {
		t.Error("the name of an administrator's object is not accepted as a token")
	}
}

// verifier and challenge are the example in RFC 7636, appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

func TestChallengeIsValidated(t *testing.T) {
	tests := []struct {
		name, challenge, method, verifier string
		want                              bool
	}{
		{"S256", challenge, S256, verifier, true},
		{"S256 with the challenge itself", challenge, S256, challenge, false},
		{"S256 without a verifier", challenge, S256, "", false},
		{"plain", verifier, Plain, verifier, true},
		{"plain with another verifier", verifier, Plain, challenge, false},
		{"short verifier", "short", Plain, "short", false},
		{"no challenge", "", "", "", true},
		{"a verifier without a challenge", "", "", verifier, false},
	}
	for _, tt := range tests {
		if got := Verifies(tt.challenge, tt.method, tt.verifier); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestChallengesAreChecked(t *testing.T) {
	tests := []struct {
		name, challenge, method, want string
		ok                            bool
	}{
		{"none", "", "", "", true},
		{"S256", challenge, "S256", S256, true},
		{"no method", challenge, "", Plain, true},
		{"unknown method", challenge, "MD5", "", false},
		{"method alone", "", "S256", "", false},
		{"short", "abc", "plain", "", false},
		{"long", strings.Repeat("a", 129), "plain", "", false},
		{"other characters", strings.Repeat("a", 42) + "!", "plain", "", false},
	}
	for _, tt := range tests {
		got, err := CheckChallenge(tt.challenge, tt.method)
		if got != tt.want || (err == nil) != tt.ok {
			t.Errorf("%s: %q, %v", tt.name, got, err)
		}
	}
}
