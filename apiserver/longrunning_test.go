package apiserver

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

func TestTenantHasLimitedLongRunningRequests(t *testing.T) {
	const limit = 5
	for name, info := range map[string]request.RequestInfo{
		"watch":      {Verb: "watch", Resource: "configmaps"},
		"log":        {Verb: "get", Resource: "pods", Subresource: "log"},
		"exec":       {Verb: "create", Resource: "pods", Subresource: "exec"},
		"connection": {Verb: "get", Resource: "services", Subresource: "proxy"},
	} {
		t.Run(name, func(t *testing.T) {
			c := userCosts()
			c.lasting.requests = limit
			var running, started sync.WaitGroup
			end := make(chan struct{})
			handler := c.Bound(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { started.Done(); <-end }))
			send := func(caller string, info request.RequestInfo) *httptest.ResponseRecorder {
				info.IsResourceRequest = true
				r := httptest.NewRequest(http.MethodGet, "/", nil)
				r = r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), &info), &user.DefaultInfo{Name: caller}))
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, r)
				return w
			}
			start := func(caller string, info request.RequestInfo) {
				started.Add(1)
				running.Go(func() {
					if got := send(caller, info); got.Code != http.StatusOK {
						t.Errorf("%s: %d %s", caller, got.Code, got.Body)
					}
				})
			}
			for range limit {
				start("mallory", info)
			}
			started.Wait()
			if got := send("mallory", info); got.Code != http.StatusTooManyRequests || !strings.Contains(got.Body.String(), "too many watches") {
				t.Errorf("one more request: %d %s", got.Code, got.Body)
			}
			for range limit + 1 {
				start("platform", info)
			}
			start("alice", info)
			start("mallory", request.RequestInfo{Verb: "get", Resource: "pods"})
			started.Wait()
			close(end)
			running.Wait()
			start("mallory", info)
			running.Wait()
		})
	}
}

func TestTenantHasLimitedWaits(t *testing.T) {
	c := userCosts()
	c.waits.requests = 2
	var releases []func()
	handler := c.Bound(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		release, err := CountWait(r.Context())
		if err != nil {
			serveError(w, err)
			return
		}
		releases = append(releases, release)
	}))
	send := func(caller string) int {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		info := &request.RequestInfo{IsResourceRequest: true, Verb: "get", Resource: "builds", Subresource: "log"}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: caller})))
		return w.Code
	}
	for i, tt := range []struct {
		caller string
		want   int
	}{
		{"mallory", http.StatusOK}, {"mallory", http.StatusOK}, {"mallory", http.StatusTooManyRequests},
		{"alice", http.StatusOK},
		{"platform", http.StatusOK}, {"platform", http.StatusOK}, {"platform", http.StatusOK},
	} {
		if got := send(tt.caller); got != tt.want {
			t.Errorf("request %d, of %s: status %d, want %d", i, tt.caller, got, tt.want)
		}
	}
	releases[0]()
	if got := send("mallory"); got != http.StatusOK {
		t.Errorf("after the end of a wait: status %d", got)
	}
}

func TestWatchHasShortQuery(t *testing.T) {
	handler := userCosts().Bound(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	long := "/?labelSelector=" + strings.Repeat("a", maxWatchQuery)
	for name, tt := range map[string]struct {
		caller, url, verb string
		want              int
	}{
		"watch":                 {"mallory", "/?labelSelector=a", "watch", http.StatusOK},
		"long selector":         {"mallory", long, "watch", http.StatusRequestEntityTooLarge},
		"list":                  {"mallory", long, "list", http.StatusOK},
		"watch of the platform": {"platform", long, "watch", http.StatusOK},
	} {
		r := httptest.NewRequest(http.MethodGet, tt.url, nil)
		info := &request.RequestInfo{IsResourceRequest: true, Verb: tt.verb, Resource: "configmaps"}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: tt.caller})))
		if w.Code != tt.want {
			t.Errorf("%s: status %d, want %d", name, w.Code, tt.want)
		}
	}
}
