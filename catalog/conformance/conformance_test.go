package conformance

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/osbtest"
)

func run(t *testing.T, b *osbtest.Broker, service string) ([]Result, error) {
	t.Helper()
	server := httptest.NewServer(b)
	t.Cleanup(server.Close)
	return Run(t.Context(), Config{
		URL: server.URL, Client: server.Client(), Service: service, Timeout: time.Minute, Interval: time.Millisecond,
		Authorize: func(r *http.Request) { r.SetBasicAuth(osbtest.User, osbtest.Password) },
	})
}

func TestConformantBrokerPasses(t *testing.T) {
	for _, service := range []string{"", "db", "cloud"} {
		results, err := run(t, osbtest.New(), service)
		if err != nil {
			t.Errorf("service %q: %v", service, err)
		}
		for _, result := range results {
			if result.Problem != "" {
				t.Errorf("service %q: %s: %s", service, result.Rule, result.Problem)
			}
		}
	}
}

func TestViolationsAreReported(t *testing.T) {
	refuse := func(code int, matches func(r *http.Request) bool) func(*osbtest.Broker) {
		return func(b *osbtest.Broker) {
			b.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
				if !matches(r) {
					return false
				}
				w.WriteHeader(code)
				return true
			}
		}
	}
	status := func(method, suffix string, code int) func(*osbtest.Broker) {
		return refuse(code, func(r *http.Request) bool { return r.Method == method && strings.HasSuffix(r.URL.Path, suffix) })
	}
	instance := func(method string, code int) func(*osbtest.Broker) {
		return refuse(code, func(r *http.Request) bool { return r.Method == method && strings.Count(r.URL.Path, "/") == 3 })
	}
	synchronous := func(code int) func(*osbtest.Broker) {
		return refuse(code, func(r *http.Request) bool { return r.Method == http.MethodPut && r.URL.RawQuery == "" })
	}
	for want, change := range map[string]func(*osbtest.Broker){
		"GET of an instance while it is created gets 404":     instance(http.MethodGet, http.StatusTeapot),
		"PATCH of an instance while it is created gets 422":   instance(http.MethodPatch, http.StatusGone),
		"A request that must wait for another operation gets": instance(http.MethodPatch, http.StatusUnprocessableEntity),
		"DELETE of an instance that does not exist gets 410":  status(http.MethodDelete, "", http.StatusOK),
		"The body of an error is a JSON object":               status(http.MethodPut, "", http.StatusBadRequest),
		"A provision request for an unknown service gets 400": status(http.MethodPut, "", http.StatusCreated),
		"last_operation gets 200 with a valid state":          status(http.MethodGet, "/last_operation", http.StatusTeapot),
		"PATCH to another plan gets 200":                      status(http.MethodPatch, "", http.StatusTeapot),
		"PATCH to an unknown plan gets 400":                   status(http.MethodPatch, "", http.StatusOK),
		"PUT without accepts_incomplete gets 201":             synchronous(http.StatusAccepted),
		"An asynchronous PUT without accepts_incomplete":      synchronous(http.StatusUnprocessableEntity),
		"IDs are unique":                       func(b *osbtest.Broker) { b.Catalog = osbtest.Services("cloud", "cloud") },
		"Services and plans have all required": func(b *osbtest.Broker) { delete(b.Catalog[0], "bindable") },
	} {
		b := osbtest.New()
		change(b)
		results, _ := run(t, b, "cloud")
		violated := slices.ContainsFunc(results, func(r Result) bool { return r.Problem != "" && strings.HasPrefix(r.Rule, want) })
		if !violated {
			t.Errorf("no violation of %q in %+v", want, results)
		}
	}
}
