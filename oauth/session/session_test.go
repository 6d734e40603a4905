package session

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func secret(letter string) Secret {
	return Secret{Authentication: strings.Repeat(letter, 32), Encryption: strings.Repeat(letter, 16)}
}

func sessions(t *testing.T, maxAge time.Duration, secrets ...Secret) *Sessions {
	t.Helper()
	s, err := New("ssn", maxAge, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// carry returns a request with the cookies set by a response.
func carry(response *httptest.ResponseRecorder) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	for _, cookie := range response.Result().Cookies() {
		r.AddCookie(cookie)
	}
	return r
}

func TestSessionsCanBeReadWithSecret(t *testing.T) {
	old, rotated := sessions(t, time.Minute, secret("a")), sessions(t, time.Minute, secret("b"), secret("a"))
	alice := User{Name: "alice", UID: "1", Generation: "g"}
	response := httptest.NewRecorder()
	if err := old.Start(response, alice); err != nil {
		t.Fatal(err)
	}
	header := response.Header().Get("Set-Cookie")
	if !strings.HasPrefix(header, "__Host-ssn=") || !strings.HasSuffix(header, "; Path=/; HttpOnly; Secure; SameSite=Lax") || strings.Contains(header, "alice") {
		t.Errorf("Set-Cookie: %s", header)
	}
	for name, tt := range map[string]struct {
		reader *Sessions
		want   bool
	}{
		"with the secret":                    {old, true},
		"after a change of secrets":          {rotated, true},
		"with another secret":                {sessions(t, time.Minute, secret("c")), false},
		"under another name":                 {&Sessions{Name: "__Host-other", codecs: old.codecs}, false},
		"after its lifetime":                 {sessions(t, -time.Minute, secret("a")), false},
		"with the content of another cookie": {&Sessions{Name: "__Host-ssn", codecs: sessions(t, time.Minute, secret("d")).codecs}, false},
	} {
		got, ok := tt.reader.User(carry(response))
		if ok != tt.want || ok && got != alice {
			t.Errorf("%s: %+v, %v", name, got, ok)
		}
	}
	recorder := httptest.NewRecorder()
	if err := old.Clear(recorder); err != nil {
		t.Fatal(err)
	}
	if got, ok := old.User(carry(recorder)); ok {
		t.Errorf("a cleared session identifies %+v", got)
	}
}

func TestFormValueMatchesCookie(t *testing.T) {
	response := httptest.NewRecorder()
	value := CSRF(response, httptest.NewRequest(http.MethodGet, "/", nil))
	browser := carry(response)
	if second := CSRF(httptest.NewRecorder(), browser); second != value {
		t.Error("a second form has another value")
	}
	other := CSRF(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/", nil))
	for name, tt := range map[string]struct {
		r     *http.Request
		value string
		want  bool
	}{
		"the form":          {browser, value, true},
		"another's form":    {browser, other, false},
		"no value":          {browser, "", false},
		"no cookie":         {httptest.NewRequest(http.MethodPost, "/", nil), value, false},
		"neither":           {httptest.NewRequest(http.MethodPost, "/", nil), "", false},
		"part of the value": {browser, value[1:], false},
	} {
		if CheckCSRF(tt.r, tt.value) != tt.want {
			t.Errorf("wrong result for %s", name)
		}
	}
}

func TestSecretsAreCreatedOnceAndValidated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secrets.yaml")
	first, err := EnsureSecrets(path)
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := EnsureSecrets(path)
	if err != nil || len(secrets) != 1 || secrets[0] != first[0] {
		t.Errorf("secrets change: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	for name, content := range map[string]string{
		"empty":       "",
		"no secrets":  "kind: SessionSecrets\napiVersion: v1\nsecrets: []\n",
		"short":       "kind: SessionSecrets\napiVersion: v1\nsecrets: [{authentication: topsecret, encryption: topsecret}]\n",
		"unknown key": "kind: SessionSecrets\napiVersion: v1\nsecret: topsecret\n",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := EnsureSecrets(path); err == nil || strings.Contains(err.Error(), "topsecret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
