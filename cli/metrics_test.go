package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestTopExplainsMissingMetrics runs `oc adm top` against a server that has no API groups.
func TestTopExplainsMissingMetrics(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/api":
			w.Write([]byte(`{"kind": "APIVersions", "versions": ["v1"]}`))
		case "/apis":
			w.Write([]byte(`{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	for _, args := range []string{"adm top nodes", "adm top pods", "top pod"} {
		words := append([]string{"--server=" + server.URL}, strings.Fields(args)...)
		_, stderr, code := client(t, "oc", nil, words...)
		if code == 0 || !strings.Contains(stderr, "install metrics-server") {
			t.Errorf("oc %s: code %d, %s", args, code, stderr)
		}
	}
}
