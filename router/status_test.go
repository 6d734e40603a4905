package router

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/router/claim"
)

// contest lets routers, each with a name and a host, take turns writing the status of one route. It
// stops when no router writes, or after twenty rounds. It returns the route and each router's
// number of writes.
func contest(t *testing.T, routers ...[2]string) (*routev1.Route, []int) {
	t.Helper()
	current := &routev1.Route{Spec: routev1.RouteSpec{Host: "www.example.com"}}
	current.Namespace, current.Name = "shop", "front"
	writes := make([]int, len(routers))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route := &routev1.Route{}
		if err := json.NewDecoder(r.Body).Decode(route); err != nil {
			t.Error(err)
		}
		route.ResourceVersion += "1"
		current = route
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(route)
	}))
	defer server.Close()
	client, err := routes(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	var writers []*statusWriter
	for _, router := range routers {
		s := read(t, map[string]string{"ROUTER_SERVICE_NAME": router[0], "ROUTER_CANONICAL_HOSTNAME": router[1]})
		writers = append(writers, &statusWriter{client: client, settings: s, writes: map[string]*writing{}})
	}
	for range 20 {
		for i, writer := range writers {
			before := current
			if err := writer.write(t.Context(), claim.Verdict{Route: before.DeepCopy()}); err != nil {
				t.Fatal(err)
			}
			if current != before {
				writes[i]++
			}
		}
	}
	return current, writes
}

func TestRoutersWithDifferentNamesWriteOnce(t *testing.T) {
	route, writes := contest(t, [2]string{"gold", "gold.example.com"}, [2]string{"tin", "tin.example.com"})
	if !slices.Equal(writes, []int{1, 1}) {
		t.Errorf("the numbers of writes are %v", writes)
	}
	var hosts []string
	for _, ingress := range route.Status.Ingress {
		hosts = append(hosts, ingress.RouterName+" "+ingress.RouterCanonicalHostname)
	}
	if !slices.Equal(hosts, []string{"gold gold.example.com", "tin tin.example.com"}) {
		t.Errorf("the status is %v", hosts)
	}
}

func TestRoutersWithSameNameStopOverwriting(t *testing.T) {
	_, writes := contest(t, [2]string{"gold", "a.example.com"}, [2]string{"gold", "b.example.com"})
	if writes[0] != contentions+1 && writes[1] != contentions+1 || writes[0] > contentions+1 || writes[1] > contentions+1 {
		t.Errorf("the numbers of writes are %v, want one router to stop after %d", writes, contentions+1)
	}
}

func TestRoutersWithSameNameAndHostWriteOnce(t *testing.T) {
	if _, writes := contest(t, [2]string{"gold", "a.example.com"}, [2]string{"gold", "a.example.com"}); !slices.Equal(writes, []int{1, 0}) {
		t.Errorf("the numbers of writes are %v", writes)
	}
}

// answering returns decisions with a fake API server. The server responds to each write with the
// given status code and the route in the request. count receives the number of writes.
func answering(t *testing.T, code *int, count *int) *decisions {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*count++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(*code)
		_, _ = io.Copy(w, r.Body)
	}))
	t.Cleanup(server.Close)
	d, err := newDecisions(&rest.Config{Host: server.URL}, read(t, nil), "")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// front returns a route with the given resource version.
func front(version string) *routev1.Route {
	route := &routev1.Route{Spec: routev1.RouteSpec{Host: "www.example.com"}}
	route.Namespace, route.Name, route.ResourceVersion = "shop", "front", version
	return route
}

func TestOwnStatusCausesNoDecision(t *testing.T) {
	code, count := http.StatusOK, 0
	d := answering(t, &code, &count)
	before := front("1")
	written := front("2")
	written.Status.Ingress = []routev1.RouteIngress{d.status.entry(claim.Verdict{Route: before})}
	if d.seen.isOwnUpdate(before, written) {
		t.Error("the status of an earlier process is treated as written")
	}
	if err := d.status.write(t.Context(), claim.Verdict{Route: before}); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		change func(*routev1.Route)
		own    bool
	}{
		"own status": {func(*routev1.Route) {}, true},
		"own status, and of other routers": {func(r *routev1.Route) {
			r.Status.Ingress = append(r.Status.Ingress, routev1.RouteIngress{RouterName: "x"})
		}, true},
		"changed by another router": {func(r *routev1.Route) { r.Status.Ingress[0].Host = "x" }, false},
		"removed":                   {func(r *routev1.Route) { r.Status.Ingress = nil }, false},
		"other host":                {func(r *routev1.Route) { r.Spec.Host = "x" }, false},
		"other label":               {func(r *routev1.Route) { r.Labels = map[string]string{"a": "b"} }, false},
		"other annotation":          {func(r *routev1.Route) { r.Annotations = map[string]string{"a": "b"} }, false},
		"new route":                 {func(r *routev1.Route) { r.UID = "x" }, false},
	} {
		after := written.DeepCopy()
		tt.change(after)
		if got := d.seen.isOwnUpdate(before, after); got != tt.own {
			t.Errorf("%s: own update %t, want %t", name, got, tt.own)
		}
	}
	if err := d.status.write(t.Context(), claim.Verdict{Route: before}); err != nil || count != 1 {
		t.Errorf("%d writes of one version, error %v", count, err)
	}
}

func TestFailedStatusIsWrittenAgain(t *testing.T) {
	for name, tt := range map[string]struct {
		code            int
		fails, outdated bool
	}{
		"server error": {http.StatusInternalServerError, true, false},
		"conflict":     {http.StatusConflict, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			code, count := tt.code, 0
			d := answering(t, &code, &count)
			if err := d.status.write(t.Context(), claim.Verdict{Route: front("1")}); (err != nil) != tt.fails {
				t.Errorf("error %v", err)
			}
			if d.seen.pending.routes != tt.outdated {
				t.Errorf("new decisions are requested: %t, want %t", d.seen.pending.routes, tt.outdated)
			}
			code = http.StatusOK
			if err := d.status.write(t.Context(), claim.Verdict{Route: front("1")}); err != nil || count < 2 {
				t.Errorf("%d writes, error %v", count, err)
			}
		})
	}
}
