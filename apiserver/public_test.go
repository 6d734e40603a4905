package apiserver

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// TestChainSeesNoSecrets sends a request that contains a secret in every possible place through
// conceal and reveal.
func TestChainSeesNoSecrets(t *testing.T) {
	var buf bytes.Buffer
	handler := conceal(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.Write(&buf)
		buf.WriteString(r.RequestURI + r.URL.String())
		r.Header.Del("Authorization") // as upstream's authenticators do
		reveal(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			_, _ = io.WriteString(w, strings.Join([]string{user, password, r.URL.Query().Get("code"), r.PostFormValue("password"), r.Header.Get("X-Remote-User")}, " "))
		})).ServeHTTP(w, r)
	}))
	r := httptest.NewRequest(http.MethodPost, "/oauth/token?code=treasure1", strings.NewReader("password=treasure2"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", "a=treasure3")
	r.Header.Set("X-Remote-User", "bob")
	r.Header.Set("Impersonate-User", "system:admin")
	r.Header.Set("User-Agent", "curl")
	r.SetBasicAuth("alice", "treasure4")
	resp := httptest.NewRecorder()
	handler.ServeHTTP(resp, r)
	if got := resp.Body.String(); got != "alice treasure4 treasure1 treasure2 bob" {
		t.Errorf("the handler sees %q", got)
	}
	for _, secret := range []string{"treasure", "bob", "system:admin", "Basic"} {
		if strings.Contains(buf.String(), secret) {
			t.Errorf("the chain sees %s in\n%s", secret, buf.String())
		}
	}
	if !strings.Contains(buf.String(), "curl") {
		t.Errorf("the chain does not see the user agent:\n%s", buf.String())
	}
}

func TestConcealRejectsLargeBodies(t *testing.T) {
	handler := conceal(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the request is served") }))
	resp := httptest.NewRecorder()
	handler.ServeHTTP(resp, httptest.NewRequest(http.MethodPost, "/login", strings.NewReader(strings.Repeat("x", maxPublicBody+1))))
	if resp.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("status %d", resp.Code)
	}
}

func TestConcealPathsHidesSecrets(t *testing.T) {
	s := &Server{hooks: Hooks{Conceal: []func(string) string{func(path string) string { return strings.ReplaceAll(path, "treasure", "redacted") }}}}
	resolver := corrected{RequestInfoResolver: &request.RequestInfoFactory{}}
	s.concealPaths(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/hooks/redacted/generic" || r.RequestURI != "/hooks/redacted/generic?a=b" {
			t.Errorf("the chain sees %s and %s", r.URL.Path, r.RequestURI)
		}
		if info, err := resolver.NewRequestInfo(r); err != nil || info.Path != "/hooks/treasure/generic" {
			t.Errorf("the request is read as %+v, %v", info, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/hooks/treasure/generic?a=b", nil))
}

func TestIncompletePublicBodiesAreLimited(t *testing.T) {
	arriving := newArrivals()
	arriving.small.requests = 1
	receive := func(body io.Reader, from string) (int, error) {
		r := httptest.NewRequest(http.MethodPost, "/login", body)
		r.RemoteAddr = from
		content, err := receivePublic(arriving, httptest.NewRecorder(), r)
		return len(content), err
	}
	slow, sender := io.Pipe()
	done := make(chan error)
	go func() {
		_, err := receive(slow, "192.0.2.1:1")
		done <- err
	}()
	if _, err := sender.Write(make([]byte, tinyBody+1)); err != nil {
		t.Fatal(err)
	}
	for from, all := range map[string]bool{"192.0.2.1:2": false, "192.0.2.2:1": true} {
		for _, size := range []int{0, tinyBody - 1, tinyBody + 1, smallBody} {
			n, err := receive(bytes.NewReader(make([]byte, size)), from)
			if want := all || size < tinyBody; (err == nil) != want || err == nil && n != size {
				t.Errorf("%s: %d of %d bytes, error %v", from, n, size, err)
			}
		}
	}
	if err := sender.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
