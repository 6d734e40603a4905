package router

import (
	"encoding/json"
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
