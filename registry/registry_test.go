package registry

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestRepositoryIsProjectAndStream(t *testing.T) {
	for path, want := range map[string]string{
		"/v2/shop/app/manifests/v1":                       "shop/app manifest v1",
		"/v2/shop/app/blobs/uploads/":                     "shop/app blob-upload ",
		"/v2/shop/app/tags/list":                          "shop/app tags ",
		"/v2/app/manifests/v1":                            "",
		"/v2/shop/team/app/manifests/v1":                  "",
		"/v2/shop/app/referrers/sha256:a":                 "shop/app referrers ",
		"/v2/shop/referrers/manifests/v1":                 "shop/referrers manifest v1",
		"/v2/shop/referrers/referrers/sha256:a":           "shop/referrers referrers ",
		"/v2/_catalog":                                    "/ catalog ",
		"/v2/shop/app/manifests/../../other/manifests/v1": "",
		"/somewhere":                                      "",
	} {
		got, err := targetOf(httptest.NewRequest(http.MethodGet, path, nil))
		if want == "" {
			if err == nil {
				t.Errorf("%s: %+v, want an error", path, got)
			}
			continue
		}
		if text := got.repository() + " " + got.route + " " + got.reference; err != nil || text != want {
			t.Errorf("%s: %q, %v, want %q", path, text, err, want)
		}
	}
}

func TestInvalidTagHasNoManifest(t *testing.T) {
	for request, want := range map[string]int{
		"GET /v2/shop/app/manifests/.invalid":    http.StatusNotFound,
		"HEAD /v2/shop/app/manifests/a+b":        http.StatusNotFound,
		"DELETE /v2/shop/app/manifests/.invalid": http.StatusNotFound,
		"PUT /v2/shop/app/manifests/.invalid":    http.StatusBadRequest,
		"GET /v2/shop/app/nothing":               http.StatusNotFound,
	} {
		method, path, _ := strings.Cut(request, " ")
		_, err := targetOf(httptest.NewRequest(method, path, nil))
		w := httptest.NewRecorder()
		serveError(w, err)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", request, w.Code, want)
		}
	}
}

func TestListsArePaged(t *testing.T) {
	all := func() []string { return []string{"c", "a", "b"} }
	for query, want := range map[string]string{
		"": `["a","b","c"]`, "?n=2": `["a","b"]`, "?n=2&last=b": `["c"]`, "?last=aa": `["b","c"]`, "?n=0": `[]`, "?last=z": `[]`,
	} {
		w := httptest.NewRecorder()
		servePage(w, httptest.NewRequest(http.MethodGet, "/v2/_catalog"+query, nil), all(), func(page []string) any { return page })
		if got := strings.TrimSpace(w.Body.String()); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
		if next := w.Header().Get("Link"); (query == "?n=2") != (next != "") {
			t.Errorf("%q: next page %q", query, next)
		}
	}
	w := httptest.NewRecorder()
	servePage(w, httptest.NewRequest(http.MethodGet, "/v2/_catalog?n=many", nil), all(), func(page []string) any { return page })
	if w.Code != http.StatusBadRequest {
		t.Errorf("n=many: %d", w.Code)
	}
}

func TestCredentialsAreTokens(t *testing.T) {
	request := func(change func(*http.Request)) *http.Request {
		r := httptest.NewRequest(http.MethodGet, "/v2/", nil)
		change(r)
		return r
	}
	for name, tt := range map[string]struct {
		request *http.Request
		want    caller
	}{
		"none":      {request(func(*http.Request) {}), caller{}},
		"basic":     {request(func(r *http.Request) { r.SetBasicAuth("any", "token") }), caller{"token", true, "192.0.2.1"}},
		"bearer":    {request(func(r *http.Request) { r.Header.Set("Authorization", "Bearer token") }), caller{"token", true, "192.0.2.1"}},
		"anonymous": {request(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+anonymousToken) }), caller{"", true, "192.0.2.1"}},
	} {
		if got := callerOf(tt.request); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestUploadErrorWithoutBodyIsReported(t *testing.T) {
	w := httptest.NewRecorder()
	broken := &store{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) })}
	broken.upload(w, httptest.NewRequest(http.MethodPatch, "/v2/shop/app/blobs/uploads/1", nil), noLimit)
	if w.Code != http.StatusBadGateway {
		t.Errorf("the client reads %d", w.Code)
	}
}
