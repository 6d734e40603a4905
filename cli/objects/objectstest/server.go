package objectstest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// Server is a fake API server with fixed responses.
type Server struct {
	// URL is the server's address. Kubeconfig is the path of a kubeconfig for the server, in which
	// the current project is `shop`.
	URL, Kubeconfig string

	mu       sync.Mutex
	requests []string
}

// NewServer starts a server. responses maps a method and path, such as "GET
// /api/v1/namespaces/shop", to the object in the response. For any other POST or PUT request, the
// server returns the object in the request. For all other requests, it returns status 404.
func NewServer(t testing.TB, responses map[string]any) *Server {
	t.Helper()
	s := &Server{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := r.Method + " " + r.URL.Path
		if r.Method != http.MethodGet {
			s.mu.Lock()
			s.requests = append(s.requests, strings.TrimSpace(key+" "+string(body)))
			s.mu.Unlock()
		}
		w.Header().Set("Content-Type", "application/json")
		response, ok := responses[key]
		switch {
		case ok:
			_ = json.NewEncoder(w).Encode(response)
		case r.Method == http.MethodPost || r.Method == http.MethodPut:
			w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
			_, _ = w.Write(body)
		default:
			w.WriteHeader(http.StatusNotFound)
			_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound})
		}
	}))
	t.Cleanup(server.Close)
	s.URL, s.Kubeconfig = server.URL, filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: shop, clusters: [{name: c, cluster: {server: "` + server.URL + `"}}],
		users: [{name: alice, user: {token: t}}], contexts: [{name: shop, context: {cluster: c, user: alice, namespace: shop}},
		{name: staging, context: {cluster: c, user: alice, namespace: web}}]}`
	if err := os.WriteFile(s.Kubeconfig, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// Factory returns a factory for clients that connect to the server.
func (s *Server) Factory(t testing.TB) util.Factory {
	flags := genericclioptions.NewConfigFlags(true)
	cache := t.TempDir()
	flags.KubeConfig, flags.CacheDir = &s.Kubeconfig, &cache
	return util.NewFactory(flags)
}

// Writes returns all requests except GET requests, each as method, path and body.
func (s *Server) Writes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.requests...)
}
