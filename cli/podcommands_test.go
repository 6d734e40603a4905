package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPodCommandsCallServer runs commands against a server that has no objects. The commands must
// report that the object does not exist.
func TestPodCommandsCallServer(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	for _, args := range []string{
		"rsh web", "rsh -c side web ls -l", "rsync --strategy=tar ./testdata/ web:/data", "debug web", "debug web -c side A=b -- env", "observe --listen-addr= pods -- true",
		"get pods -a", "exec web date", "exec -p web date", "exec --pod=web -c side -- ls -l", "exec web -c side -- ls -l", "deploy web", "deploy dc/web --latest --follow", "set route-backends web --zero", "set deployment-hook dc/web --pre -- true",
	} {
		words := append([]string{"--server=" + server.URL, "--namespace=shop"}, strings.Fields(args)...)
		_, stderr, code := client(t, "oc", nil, words...)
		if code == 0 || !strings.Contains(stderr, "could not find the requested resource") && !strings.Contains(stderr, "the server doesn't have a resource type") {
			t.Errorf("oc %s: code %d, %s", args, code, stderr)
		}
	}
}
