package router

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/haproxy"
)

// forbidding starts an API server that forbids requests for a path, and does not respond to other
// requests.
func forbidding(t *testing.T, path string) *httptest.Server {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, path) {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"user \"secret-name\" may not","code":403}`))
			return
		}
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	return server
}

// TestRouterReportsWatchErrors checks that a router is not ready and reports the reason if it is
// not allowed to read namespaces, which its selector needs.
func TestRouterReportsWatchErrors(t *testing.T) {
	server := forbidding(t, "/api/v1/namespaces")
	variables := read(t, map[string]string{"NAMESPACE_LABELS": "team=red"})
	view, err := newView(&rest.Config{Host: server.URL}, variables)
	if err != nil {
		t.Fatal(err)
	}
	s := session{Router: &Router{Settings: variables}, decisions: &decisions{seen: view}, engine: &haproxy.Engine{}, observed: newMetrics()}
	s.observed.watching(view.problem)
	if got := s.unready(); got != "routes are not served yet" {
		t.Errorf("before the first request: %q", got)
	}
	component := componenttest.Start(t, func(ctx context.Context, ready func()) error { ready(); return view.run(ctx) })
	defer component.Stop()
	defer server.CloseClientConnections()
	eventually.True(t, "the reason", func() bool {
		return strings.HasPrefix(s.unready(), "namespaces cannot be watched: Forbidden; NAMESPACE_LABELS") && !strings.Contains(s.unready(), "secret")
	})
	response := httptest.NewRecorder()
	s.observed.handler(newCollector(variables, running{}.Stats)).ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if !strings.Contains(response.Body.String(), "template_router_watch_failure 1\n") {
		t.Errorf("the metrics are\n%s", response.Body)
	}
}

// The service accounts of some F5 routers can watch nodes, but not ClusterNetworks.
func TestPortOfVXLANIsTheDefaultWithoutPermission(t *testing.T) {
	server := forbidding(t, "/apis/network.openshift.io/v1/clusternetworks")
	view, err := newView(&rest.Config{Host: server.URL}, read(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	networks, err := view.watchNetwork(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	if view.knowsNetworks() {
		t.Error("the router knows the networks before it reads them")
	}
	stop := make(chan struct{})
	networks.Start(stop)
	defer networks.Shutdown()
	defer close(stop)
	eventually.True(t, "end of the wait", view.knowsNetworks)
	s := f5Session{decisions: &decisions{seen: view}}
	if got := s.vxlanPort(); got != 0 {
		t.Errorf("the port is %d, want the default", got)
	}
}
