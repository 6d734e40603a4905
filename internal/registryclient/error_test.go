package registryclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/slipway-platform/slipway/internal/outbound"
)

// secret must not appear in any error.
const secret = "internal-secret"

func TestErrorsContainNoTextOfResponses(t *testing.T) {
	const id = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for name, tt := range map[string]struct {
		status int
		header http.Header
		body   string
		want   string
	}{
		"a page":      {418, nil, secret, "418 "},
		"error codes": {404, nil, `{"errors": [{"code": "` + secret + `"}, {"code": "NAME_UNKNOWN", "message": "` + secret + `"}]}`, "404 Not Found"},
		"no JSON":     {200, http.Header{"Content-Type": {secret}}, secret, ""},
		"a challenge": {401, http.Header{"Www-Authenticate": {`Bearer realm="ftp://` + secret + `"`}}, secret, ""},
		"a redirect":  {302, http.Header{"Location": {"//" + secret + ".invalid/%zz"}}, "", ""},
		"another":     {302, http.Header{"Location": {"http://127.0.0.1:1/" + secret}}, "", ""},
		"a link":      {200, http.Header{"Link": {secret}}, `{"tags": ["` + secret + `,"]}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			host := registry(t, func(w http.ResponseWriter, r *http.Request) {
				for key, values := range tt.header {
					w.Header()[key] = values
				}
				w.WriteHeader(tt.status)
				_, _ = io.WriteString(w, tt.body) // the client might have disconnected
			})
			s := session(t)
			tags, ofTags := s.Tags(t.Context(), host+"/app")
			_, ofManifest := s.Manifest(t.Context(), host+"/app@"+id)
			_, ofBlob := s.Blob(t.Context(), host+"/app", id)
			_, _, ofStream := Client{}.Blob(t.Context(), host+"/app", id)
			_, ofReferrers := Client{}.Referrers(t.Context(), host+"/app", id)
			for _, err := range []error{ofTags, ofManifest, ofBlob, ofStream, ofReferrers} {
				if err != nil && (strings.Contains(err.Error(), secret) || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%v, want %q and nothing of the response", err, tt.want)
				}
			}
			if ofManifest == nil || ofBlob == nil || len(tags) > 0 {
				t.Errorf("%v, %v, tags %q", ofManifest, ofBlob, tags)
			}
			if tt.status == 404 && (Status(ofManifest) != 404 || !strings.Contains(ofManifest.Error(), "(NAME_UNKNOWN)")) {
				t.Errorf("status %d of %v", Status(ofManifest), ofManifest)
			}
		})
	}
}

func TestExpandingJSONIsRejected(t *testing.T) {
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		field := map[bool]string{true: "tags", false: "layers"}[strings.HasSuffix(r.URL.Path, "/tags/list")]
		// Ignore the error, because the client closes the connection.
		_, _ = io.WriteString(w, `{"`+field+`": [{}`+strings.Repeat(",{}", maxListed)+`]}`)
	})
	_, ofManifest := session(t).Manifest(t.Context(), host+"/app:v1")
	_, ofTags := session(t).Tags(t.Context(), host+"/app")
	for _, err := range []error{ofManifest, ofTags} {
		if err == nil || !strings.Contains(err.Error(), "JSON values") {
			t.Error(err)
		}
	}
}

func TestLocalErrorsAreExplained(t *testing.T) {
	served := false
	host := registry(t, func(http.ResponseWriter, *http.Request) { served = true })
	transport := outbound.New(outbound.Policy{}).Transport(false)
	s, err := Client{Transport: transport}.Session()
	if err != nil {
		t.Fatal(err)
	}
	rejection := &outbound.Refused{}
	if _, err := s.Manifest(t.Context(), host+"/app:v1"); !errors.As(err, &rejection) || !strings.Contains(err.Error(), "slipway.outbound") || served {
		t.Errorf("an address of the host: %v", err)
	}
	silent := registry(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := session(t).Manifest(ctx, silent+"/app:v1"); err == nil || !strings.Contains(err.Error(), "in time") {
		t.Errorf("a silent registry: %v", err)
	}
}
