package catalogcontroller

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// fault returns one of the faults that can affect a request. The result is an argument for
// Broker.Refuse or Broker.Fault.
func fault(kind int) func(w http.ResponseWriter, r *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		switch kind {
		case 0:
			w.WriteHeader(http.StatusInternalServerError)
		case 1:
			panic(http.ErrAbortHandler) // the connection ends without a response
		case 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, "not JSON")
		case 4:
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"error": "ConcurrencyError"}`)
		case 5:
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		case 6:
			w.WriteHeader(http.StatusUnauthorized)
		}
		return true
	}
}

// schedules is the number of fault schedules. make soak runs 500.
var schedules = flag.Int("schedules", 45, "number of fault schedules between the catalog and a broker")

// faults makes requests to the broker fail at random, before or after the broker handles them. At
// most limit requests fail.
func (f *fixture) faults(random *rand.Rand, limit int) {
	f.broker.Set(func() {
		f.broker.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
			if limit == 0 || random.IntN(3) > 0 {
				return false
			}
			limit--
			return fault(random.IntN(7))(w, r)
		}
		f.broker.Fault = func(w http.ResponseWriter, r *http.Request) bool {
			if limit == 0 || random.IntN(3) > 0 {
				return false
			}
			limit--
			return fault(random.IntN(5))(w, r)
		}
	})
}

// expect checks how many objects with an ID the broker has created and not deleted.
func (f *fixture) expect(seed, count int, ids ...string) {
	f.t.Helper()
	for _, id := range ids {
		if orders, deletions := f.broker.Count(id); orders-deletions != count {
			f.t.Fatalf("seed %d: the broker has created %d and deleted %d of %s, want %d that exist", seed, orders, deletions, id, count)
		}
	}
}

// Steps of a schedule during which the controllers can restart. noRestart means that the
// controllers do not restart.
const (
	orderStep = iota
	bindStep
	updateStep
	deleteStep
	noRestart
	stepCount
)

// TestFaultSchedules provisions, binds, updates and deprovisions instances while requests fail and
// while the controllers restart at a random point. Some instances are deleted while they are being
// provisioned. At the end of each step, the broker has exactly the instances and bindings that the
// API objects represent.
func TestFaultSchedules(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	for seed := range *schedules {
		random := rand.New(rand.NewPCG(uint64(seed), 1))
		name := fmt.Sprintf("s%d", seed)
		service, limit, requests := []string{"db", "cloud"}[random.IntN(2)], random.IntN(6), random.IntN(4)
		f.faults(random, limit)
		// begin is called after each step has begun. done reports whether the step has ended.
		begin := func(step int, done func() bool) {
			if step != seed%stepCount {
				return
			}
			sent := len(f.broker.Originators()) + requests
			eventually.True(t, "a request or the end of the step", func() bool { return len(f.broker.Originators()) >= sent || done() })
			f.restart()
		}
		ready := func() bool {
			instance := f.instance(name)
			return instance != nil && instance.Status.ReconciledGeneration == instance.Generation
		}
		deleted := func() bool { return f.instance(name) == nil }
		f.order(name, service)
		begin(orderStep, ready)
		if seed%7 != 0 {
			f.waitInstance(name, "Ready")
			f.expect(seed, 1, "id-"+name)
			f.bind(name)
			begin(bindStep, func() bool { return f.bindingState(name) == "Ready" })
			f.waitBinding(name, "Ready")
			f.expect(seed, 1, "binding-"+name)
			f.change(name, func(spec *v1beta1.ServiceInstanceSpec) {
				spec.Parameters = &runtime.RawExtension{Raw: []byte(`{"size": 2}`)}
			})
			begin(updateStep, ready)
			eventually.True(t, "the instance is updated", ready)
			f.waitInstance(name, "Ready")
			if body := f.broker.Instance("id-" + name); !reflect.DeepEqual(body["parameters"], map[string]any{"size": 2.0}) {
				t.Fatalf("seed %d: the instance is updated, but the broker has %v", seed, body)
			}
		}
		f.delete(name)
		begin(deleteStep, deleted)
		f.waitBinding(name, "deleted")
		f.waitInstance(name, "deleted")
		f.expect(seed, 0, "id-"+name, "binding-"+name)
		if _, err := f.deps.Kube.CoreV1().Secrets(namespace).Get(t.Context(), "credentials-"+name, metav1.GetOptions{}); err == nil {
			t.Fatalf("seed %d: the secret of the binding exists", seed)
		}
	}
}
