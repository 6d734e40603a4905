package redact

import (
	"bytes"
	"log"
	"testing"
)

func TestTextRedactsSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"clone https://bob:s3cret@git.example.com/app.git: no such host": "clone https://bob:<redacted>@git.example.com/app.git: no such host",
		`parse "http://bob:s3%zz@ret@proxy:3128/": invalid URL escape`:   `parse "http://bob:<redacted>@proxy:3128/": invalid URL escape`,
		"ldap://:s3cret@host":                                                     "ldap://:<redacted>@host",
		"docker://registry:5000/app@sha256:abc":                                   "docker://registry:5000/app@sha256:abc",
		"https://example.com:8443/a and bob@example.com":                          "https://example.com:8443/a and bob@example.com",
		"image registry.example.com/app@sha256:abc at 10.0.0.1:5000":              "image registry.example.com/app@sha256:abc at 10.0.0.1:5000",
		"-----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY-----\nrest": "<redacted>\nrest",
		"-----BEGIN PRIVATE KEY-----\ncut off":                                    "<redacted>",
		"-----BEGIN CERTIFICATE-----\nMII\n":                                      "-----BEGIN CERTIFICATE-----\nMII\n",
	} {
		if got := Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestLogsHaveNoPasswords(t *testing.T) {
	var out bytes.Buffer
	log.New(Writer(&out), "", 0).Print("get http://a:b@c: refused")
	if got := out.String(); got != "get http://a:<redacted>@c: refused\n" {
		t.Errorf("the log is %q", got)
	}
}
