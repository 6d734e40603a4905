package registryclient

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/opencontainers/go-digest"
)

// registry serves every repository with handle and returns the server's address.
func registry(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			handle(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestTooLargeManifestIsAnError(t *testing.T) {
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		size := maxResponse
		if strings.HasSuffix(r.URL.Path, "/large") {
			size++
		}
		w.Header().Set("Content-Type", string(types.OCIManifestSchema1))
		_, _ = w.Write(append([]byte("{}"), bytes.Repeat([]byte(" "), size-2)...)) // the client hangs up
	})
	if read, err := (Client{}).Manifest(t.Context(), host+"/app:most"); err != nil || len(read.Bytes) != maxResponse {
		t.Errorf("the largest manifest: %d bytes, %v", len(read.Bytes), err)
	}
	if _, err := (Client{}).Manifest(t.Context(), host+"/app:large"); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a larger manifest: %v", err)
	}
}

func TestLargeBlobsAreRead(t *testing.T) {
	blob := make([]byte, maxResponse+1)
	host := registry(t, func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "blob", time.Time{}, bytes.NewReader(blob))
	})
	content, size, err := Client{}.Blob(t.Context(), host+"/app", digest.FromBytes(blob).String())
	if err != nil {
		t.Fatal(err)
	}
	defer content.Close()
	if read, err := io.ReadAll(content); err != nil || len(read) != len(blob) || size != int64(len(blob)) {
		t.Errorf("%d of %d bytes, %v", len(read), size, err)
	}
}
