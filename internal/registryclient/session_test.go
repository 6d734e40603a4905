package registryclient

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
	"golang.org/x/sync/errgroup"
)

func session(t *testing.T) *Session {
	t.Helper()
	session, err := Client{}.Session()
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func TestTooLargeTagListIsAnError(t *testing.T) {
	host := registry(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(append(bytes.Repeat([]byte(" "), maxResponse), "{}"...)) // the client hangs up
	})
	if _, err := session(t).Tags(t.Context(), host+"/app"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("%v", err)
	}
}

func TestTagsAreLimited(t *testing.T) {
	var requests atomic.Int32
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		page := map[string][]string{}
		for i := range maxTags/4 + 1 {
			page["tags"] = append(page["tags"], fmt.Sprintf("v%d.%d", requests.Load(), i))
		}
		requests.Add(1)
		w.Header().Set("Link", fmt.Sprintf(`<%s?after=%d>; rel="next"`, r.URL.Path, requests.Load()))
		_ = json.NewEncoder(w).Encode(page)
	})
	tags, err := session(t).Tags(t.Context(), host+"/app")
	if err != nil {
		t.Fatal(err)
	}
	if len(tags) != maxTags || tags[0] != "v0.0" || requests.Load() != 4 {
		t.Errorf("%d tags from %d responses", len(tags), requests.Load())
	}
}

func TestSessionReadsEachDigestOnce(t *testing.T) {
	manifest, config := []byte("{}"), []byte(`{"os": "linux"}`)
	var requests atomic.Int32
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(map[bool][]byte{true: manifest, false: config}[strings.Contains(r.URL.Path, "/manifests/")])
	})
	s := session(t)
	var readers errgroup.Group
	for range 10 {
		readers.Go(func() error {
			if _, err := s.Manifest(t.Context(), host+"/app@"+digest.FromBytes(manifest).String()); err != nil {
				return err
			}
			read, err := s.Blob(t.Context(), host+"/app", digest.FromBytes(config).String())
			if err == nil && !bytes.Equal(read, config) {
				err = fmt.Errorf("read %q", read)
			}
			return err
		})
	}
	if err := readers.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := requests.Load(); n != 2 {
		t.Errorf("%d requests for a manifest and a blob", n)
	}
}
