package console

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"strings"
	"testing"
)

func compressed(t *testing.T, text string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFilesAreServedInSmallestEncoding(t *testing.T) {
	b := newFixture(t).browser()
	for name, tt := range map[string]struct {
		path, accept string
		status       int
		encoding     string
		body         string
		cache        string
	}{
		"page by brotli":           {"/console/", "gzip, deflate, br", 200, "br", "brotli", "no-cache"},
		"page of a deep link":      {"/console/project/a/pods/b", "br", 200, "br", "brotli", "no-cache"},
		"page without compression": {"/console/", "", 200, "", "<!doctype html>", "no-cache"},
		"brotli refused":           {"/console/", "br;q=0", 200, "", "<!doctype html>", "no-cache"},
		"brotli with a quality":    {"/console/", "br;q=0.5", 200, "br", "brotli", "no-cache"},
		"asset":                    {"/console/assets/a.js", "br", 200, "br", "brotli of a", "public, max-age=31536000, immutable"},
		"font":                     {"/console/assets/font.woff2", "br", 200, "", "font", "public, max-age=31536000, immutable"},
		"icon":                     {"/console/icon.svg", "", 200, "", "<svg/>", "no-cache"},
		"asset of another version": {"/console/assets/b.js", "br", 404, "", "404 page not found\n", "no-store"},
		"compressed form":          {"/console/assets/a.js.br", "br", 404, "", "404 page not found\n", "no-store"},
		"directory":                {"/console/assets/", "br", 404, "", "404 page not found\n", "no-store"},
		"file outside":             {"/console/assets/..%2f..%2fREADME", "br", 404, "", "404 page not found\n", "no-store"},
		"inputs of the build":      {"/console/inputs", "br", 200, "br", "brotli", "no-cache"},
	} {
		t.Run(name, func(t *testing.T) {
			got := b.send(http.MethodGet, tt.path, func(r *http.Request) { r.Header.Set("Accept-Encoding", tt.accept) })
			if got.Code != tt.status || got.Header().Get("Content-Encoding") != tt.encoding || got.Body.String() != tt.body || got.Header().Get("Cache-Control") != tt.cache {
				t.Errorf("%d, %v, %q", got.Code, got.Header(), got.Body)
			}
			if tt.status == 200 && strings.HasSuffix(tt.path, ".js") && got.Header().Get("Content-Type") != "text/javascript; charset=utf-8" {
				t.Errorf("type %q", got.Header().Get("Content-Type"))
			}
		})
	}
	tag := b.send(http.MethodGet, "/console/", nil).Header().Get("Etag")
	if got := b.send(http.MethodGet, "/console/", func(r *http.Request) { r.Header.Set("If-None-Match", tag) }); got.Code != http.StatusNotModified || got.Body.Len() > 0 {
		t.Errorf("a page with a matching ETag is sent again: %d", got.Code)
	}
}

func TestRootRedirectsBrowsersToConsole(t *testing.T) {
	f := newFixture(t)
	got := f.browser().send(http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8") })
	if got.Code != http.StatusFound || got.Header().Get("Location") != "/console/" || got.Header().Get("Vary") != "Accept" {
		t.Errorf("%d, %v", got.Code, got.Header())
	}
	for _, accept := range []string{"", "*/*", "application/json"} {
		f.browser().send(http.MethodGet, "/", func(r *http.Request) { r.Header.Set("Accept", accept) })
		if f.request == nil {
			t.Errorf("a client that accepts %q does not get the API", accept)
		}
	}
}

func TestEveryResponseIsHardened(t *testing.T) {
	b := newFixture(t).browser()
	for _, path := range []string{"/console/", "/console/assets/a.js", "/console/assets/missing", loginPath, callbackPath, sessionPath, logoutPath, "/console"} {
		header := b.send(http.MethodGet, path, nil).Header()
		policy := header.Get("Content-Security-Policy")
		if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "frame-ancestors 'none'") || strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") {
			t.Errorf("%s: policy %q", path, policy)
		}
		for name, want := range map[string]string{
			"X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
		} {
			if header.Get(name) != want {
				t.Errorf("%s: %s is %q", path, name, header.Get(name))
			}
		}
	}
}

func TestMissingConsoleNamesRemedy(t *testing.T) {
	f := newFixture(t)
	f.files = nil
	if got := f.browser().send(http.MethodGet, "/console/", nil); got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), "make build") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
}
