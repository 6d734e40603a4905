package apiserver

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// asked returns a user's request and a recorder for the response.
func asked(name, verb, target, media, body string) (*httptest.ResponseRecorder, *http.Request) {
	method := map[string]string{"list": http.MethodGet, "patch": http.MethodPatch, "create": http.MethodPost, "deletecollection": http.MethodDelete}[verb]
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Header.Set("Accept", media)
	r.Header.Set("Content-Type", media)
	info := &request.RequestInfo{IsResourceRequest: true, Verb: verb, Namespace: "shop", Resource: "configmaps"}
	return httptest.NewRecorder(), r.WithContext(request.WithUser(request.WithRequestInfo(r.Context(), info), &user.DefaultInfo{Name: name}))
}

// userCosts returns limits that treat every user except the platform as a tenant. Requests above
// the limits are rejected instead of waiting.
func userCosts() *Costs {
	c := NewCosts(func(r *http.Request) string {
		u, _ := request.UserFrom(r.Context())
		return strings.TrimPrefix(u.GetName(), "platform")
	})
	c.lists.waiting, c.writes.waiting = 0, 0
	return c
}

func TestCostlyRequestsOfTenantAreLimited(t *testing.T) {
	list := func(values int) string { return "[1" + strings.Repeat(",1", values) + "]" }
	for name, tt := range map[string]struct {
		verb, target, media, body string
		limit                     int // 0 means no limit
	}{
		"table":                 {"list", "/", "application/json;as=Table;g=meta.k8s.io;v=v1,application/json", "", maxCostlyLists},
		"YAML":                  {"list", "/", "application/yaml", "", maxCostlyLists},
		"former state":          {"list", "/?resourceVersionMatch=Exact&resourceVersion=1", "application/json", "", maxCostlyLists},
		"further part":          {"list", "/?continue=x", "application/json", "", maxCostlyLists},
		"deletion of a list":    {"deletecollection", "/", "application/json", "", maxCostlyLists},
		"list":                  {"list", "/", "application/json", "", 0},
		"large object":          {"create", "/", "application/json", list(costlyValues), maxCostlyWrites},
		"large YAML":            {"create", "/", "application/yaml", list(costlyValues), maxCostlyWrites},
		"large protobuf":        {"create", "/", "application/vnd.kubernetes.protobuf", podOf(t, costlyValues+2), maxCostlyWrites},
		"small object":          {"create", "/", "application/json", list(costlyValues / 2), 0},
		"strategic merge patch": {"patch", "/", "application/strategic-merge-patch+json", list(costlyPatchValues), maxCostlyWrites},
		"JSON patch":            {"patch", "/", "application/json-patch+json", list(costlyPatchValues), maxCostlyWrites},
		"small patch":           {"patch", "/", "application/json-patch+json", list(costlyPatchValues / 2), 0},
	} {
		t.Run(name, func(t *testing.T) {
			c := userCosts()
			// nested handles a request, and sends further requests while that request is in flight.
			// It returns the number of handled requests.
			var nested func(user string, depth int) int
			nested = func(user string, depth int) (handled int) {
				w, r := asked(user, tt.verb, tt.target, tt.media, tt.body)
				c.Bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					if _, err := io.ReadAll(r.Body); err != nil {
						if !apierrors.IsTooManyRequests(err) {
							t.Errorf("error %v", err)
						}
						return
					}
					handled = 1
					if depth > 1 {
						handled += nested(user, depth-1)
					}
				})).ServeHTTP(w, r)
				return handled
			}
			const depth = 5
			want := tt.limit
			if want == 0 {
				want = depth
			}
			for range 2 { // when a request ends, its turn is released
				if got := nested("mallory", depth); got != want {
					t.Errorf("%d requests at the same time, want %d", got, want)
				}
			}
			if got := nested("platform", depth); got != depth {
				t.Errorf("%d requests of the platform, want %d", got, depth)
			}
			if len(c.lists.tenants)+len(c.writes.tenants) > 0 {
				t.Error("tenants without requests are still in the map")
			}
		})
	}
}

func TestCostlyRequestsDoNotDelayOtherTenants(t *testing.T) {
	c := userCosts()
	release, err := c.writes.acquire(t.Context(), "mallory")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	other, err := c.writes.acquire(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	other()
}

func TestCostlyRequestWaitsForItsTurn(t *testing.T) {
	s := &shares{requests: 1, waiting: 1, timeout: time.Minute}
	release, err := s.acquire(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	turns := make(chan error)
	go func() {
		next, err := s.acquire(t.Context(), "alice")
		if err == nil {
			next()
		}
		turns <- err
	}()
	release()
	if err := <-turns; err != nil {
		t.Error(err)
	}
}

func TestListsOfTenantsAreNotIndented(t *testing.T) {
	for name, want := range map[string]string{"alice": "false", "platform": "true"} {
		w, r := asked(name, "list", "/?pretty=true&limit=5", "application/json", "")
		userCosts().Bound(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			if query := r.URL.Query(); query.Get("pretty") != want || query.Get("limit") != "5" {
				t.Errorf("the query of the list of %q is %v", name, query)
			}
		})).ServeHTTP(w, r)
	}
}

func TestRejectedListHasRetryAfter(t *testing.T) {
	c := userCosts()
	for range maxCostlyLists {
		if _, err := c.lists.acquire(t.Context(), "mallory"); err != nil {
			t.Fatal(err)
		}
	}
	w, r := asked("mallory", "list", "/", "application/yaml", "")
	c.Bound(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the list is served") })).ServeHTTP(w, r)
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") == "" || !strings.Contains(w.Body.String(), `"kind":"Status"`) {
		t.Errorf("response %d %v %s", w.Code, w.Header(), w.Body)
	}
}
