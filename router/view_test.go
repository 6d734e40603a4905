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

// TestRouterReportsWatchErrors checks that a router is not ready and reports the reason if it is
// not allowed to read namespaces, which its selector needs.
func TestRouterReportsWatchErrors(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(r.URL.Path, "/api/v1/namespaces") {
			w.WriteHeader(http.StatusForbidden)
			_, _ = w.Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"user \"secret-name\" may not","code":403}`))
			return
		}
		<-r.Context().Done()
	}))
	defer server.Close()
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
