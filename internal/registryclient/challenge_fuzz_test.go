package registryclient

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
)

// scripted is an in-memory registry that also acts as every token server.
type scripted struct {
	t                *testing.T
	challenge, token string
	status, count    int
}

// maxScripted is more than the number of requests that any client needs for one manifest.
const maxScripted = 30

// RoundTrip responds to the registry's requests with the challenge, and to all others with the
// token.
func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.count++; s.count > maxScripted {
		s.t.Fatalf("more than %d requests, the last to %s", maxScripted, r.URL)
	}
	if _, password, ok := r.BasicAuth(); ok && password == "hunter2secret" && r.URL.Scheme != "https" {
		s.t.Errorf("the password is sent to %s without TLS", r.URL)
	}
	if strings.Contains(r.URL.String(), "hunter2secret") {
		s.t.Errorf("the password is in the address %s", r.URL)
	}
	resp := &http.Response{
		StatusCode: s.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(s.token)),
	}
	if strings.HasPrefix(r.URL.Path, "/v2/") && r.URL.Host == "registry.example.com" {
		resp.StatusCode = http.StatusUnauthorized
		resp.Header["Www-Authenticate"] = strings.Split(s.challenge, "\n")
		resp.Body = io.NopCloser(strings.NewReader(`{"errors":[{"code":"UNAUTHORIZED"}]}`))
	}
	return resp, nil
}

// FuzzChallenge checks that a registry's challenge cannot cause an unlimited number of requests,
// with any response of the token server that it specifies. It also checks that the password is sent
// only over TLS, and is not in errors.
func FuzzChallenge(f *testing.F) {
	for _, seed := range []string{
		`Bearer realm="https://registry.example.com/token",service="registry",scope="repository:app:pull"`,
		`Bearer realm="https://other.example.com/token"`, `Bearer realm="http://other.example.com/token"`, `Basic realm="registry"`, `Bearer`, `Bearer realm`, `Bearer realm="`,
		`Bearer realm=":"`, `Bearer realm="/v2/"`, `Bearer realm="https://registry.example.com/v2/"`, "Basic realm=\"a\"\nBearer realm=\"https://registry.example.com/token\"",
		`Digest nonce="x"`, "", `bearer realm="https://[::1"`, `Bearer realm="file:///etc/passwd"`,
	} {
		f.Add(seed, `{"token":"x"}`, 200)
		f.Add(seed, `{"access_token":1,"token":null}`, 401)
		f.Add(seed, `<html>`, 302)
	}
	f.Fuzz(func(t *testing.T, challenge, token string, status int) {
		if status < 200 || status > 599 {
			return
		}
		server := &scripted{t: t, challenge: challenge, token: token, status: status}
		client := Client{Transport: server, Keychain: Keychain{{"registry.example.com", "", authn.AuthConfig{Username: "ann", Password: "hunter2secret"}}}}
		_, err := client.Manifest(t.Context(), "registry.example.com/app:v1")
		if err == nil {
			t.Error("the registry returned no manifest")
		} else if strings.Contains(err.Error(), "hunter2secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	})
}
