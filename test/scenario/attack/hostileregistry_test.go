package attack

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	indexType    = "application/vnd.oci.image.index.v1+json"
)

// bomb returns 1 GiB of spaces, compressed with gzip.
var bomb = sync.OnceValue(func() []byte {
	var compressed bytes.Buffer
	writer := gzip.NewWriter(&compressed)
	chunk := bytes.Repeat([]byte(" "), 1<<20)
	for range 1 << 10 {
		_, _ = writer.Write(chunk)
	}
	_ = writer.Close()
	return compressed.Bytes()
})

// pour writes text repeatedly, without end.
func pour(w http.ResponseWriter, text string) {
	for {
		if _, err := w.Write([]byte(strings.Repeat(text, 1024))); err != nil {
			return
		}
	}
}

// digestOf returns the SHA-256 digest of a string.
func digestOf(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// hostile implements a registry in which each repository contains a different attack.
func hostile(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/v2/" {
		return
	}
	trick := strings.Split(r.URL.Path, "/")[2]
	manifest := func(size int64, digest string) string {
		return fmt.Sprintf(`{"schemaVersion": 2, "mediaType": %q, "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": %q, "size": %d}, "layers": []}`, manifestType, digest, size)
	}
	isManifest := strings.Contains(r.URL.Path, "/manifests/")
	w.Header().Set("Content-Type", manifestType)
	switch trick {
	case "endless":
		pour(w, `{"schemaVersion": 2,`)
	case "endless-headers":
		connection, buffer, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		_, _ = buffer.WriteString("HTTP/1.1 200 OK\r\n")
		for i := 0; ; i++ {
			if _, err := fmt.Fprintf(buffer, "X-%d: %s\r\n", i, strings.Repeat("x", 1000)); err != nil {
				return
			}
		}
	case "gzip":
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb())
	case "redirect-loop":
		http.Redirect(w, r, r.URL.Path, http.StatusTemporaryRedirect)
	case "wrong-digest-header":
		w.Header().Set("Docker-Content-Digest", digestOf("other"))
		_, _ = w.Write([]byte(manifest(2, digestOf("{}"))))
	case "wrong-length":
		w.Header().Set("Content-Length", "9223372036854775807")
		_, _ = w.Write([]byte(manifest(2, digestOf("{}"))))
	case "wrong-config", "negative-size", "huge-size":
		size := map[string]int64{"wrong-config": 2, "negative-size": -1, "huge-size": 1 << 62}[trick]
		if isManifest {
			_, _ = w.Write([]byte(manifest(size, digestOf("{}"))))
			return
		}
		_, _ = w.Write([]byte(`{"os": "lies"}`))
	case "endless-config":
		if isManifest {
			_, _ = w.Write([]byte(manifest(2, digestOf("{}"))))
			return
		}
		pour(w, "{")
	case "recursion": // each index refers to another index, without end
		w.Header().Set("Content-Type", indexType)
		_, _ = fmt.Fprintf(w, `{"schemaVersion": 2, "mediaType": %q, "manifests": [{"mediaType": %[1]q, "digest": %q, "size": 300, "platform": {"os": "linux", "architecture": "amd64"}}]}`,
			indexType, digestOf(r.URL.Path))
	case "wide": // the index refers to 9,000 manifests
		w.Header().Set("Content-Type", indexType)
		part := fmt.Sprintf(`{"mediaType": %q, "digest": %q, "size": 2}`, manifestType, digestOf("{}"))
		_, _ = fmt.Fprintf(w, `{"schemaVersion": 2, "manifests": [%s]}`, part+strings.Repeat(","+part, 2000))
	case "deep":
		_, _ = w.Write([]byte(`{"schemaVersion": 2, "annotations": ` + strings.Repeat(`{"a":`, 1<<19)))
	case "annotations":
		_, _ = fmt.Fprintf(w, `{"schemaVersion": 2, "mediaType": %q, "annotations": {"a": %q}, "config": {}, "layers": []}`, manifestType, strings.Repeat("a", 4<<20))
	case "token":
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/v2/endless/token",service="s"`, r.Host))
		w.WriteHeader(http.StatusUnauthorized)
	case "challenge":
		w.Header().Set("WWW-Authenticate", "Bearer "+strings.Repeat(`realm="x",`, 6000))
		w.WriteHeader(http.StatusUnauthorized)
	case "error":
		w.WriteHeader(http.StatusInternalServerError)
		pour(w, `{"errors": [`)
	}
}

// TestHostileRegistryCannotExhaustControlPlane imports from a registry that sends invalid
// responses.
func TestHostileRegistryCannotExhaustControlPlane(t *testing.T) {
	s := tenants(t)
	bomb()
	registry := s.distant(t, hostile)
	pid := s.Status().PID("control-plane")
	before := anonymousMemory(t, pid)
	for _, trick := range []string{
		"endless", "endless-headers", "gzip", "redirect-loop", "wrong-digest-header", "wrong-length", "wrong-config", "negative-size", "huge-size",
		"endless-config", "recursion", "wide", "deep", "annotations", "token", "challenge", "error",
	} {
		t.Run(trick, func(t *testing.T) {
			status := s.look(t, registry+"/"+trick+"/app:v1")
			if status.Status != metav1.StatusFailure {
				t.Errorf("the import succeeds: %+v", status)
			}
		})
	}
	if after := anonymousMemory(t, pid); after > before+100 {
		t.Errorf("the control plane grew from %d to %d MiB", before, after)
	}
}
