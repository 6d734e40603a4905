package catalogcontroller

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/catalogclient"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/osbtest"
	"github.com/slipway-platform/slipway/internal/outbound"
)

const namespace = "shop"

// fixture holds an API server, a broker and the controllers.
type fixture struct {
	t           *testing.T
	timeout     time.Duration
	server      *apitest.Server
	deps        *controller.Deps
	client      *catalogclient.Client
	broker      *osbtest.Broker
	url         string
	controllers *componenttest.Component
}

// newFixture starts the controllers with the given request timeout, which must be long in tests
// that count requests.
func newFixture(t *testing.T, timeout time.Duration) *fixture {
	t.Helper()
	api := apitest.Start(t)
	deps, err := controller.NewDeps(api.Config())
	if err != nil {
		t.Fatal(err)
	}
	client, err := catalogclient.New(deps.Config)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, timeout: timeout, server: api, deps: deps, client: client, broker: osbtest.New()}
	server := httptest.NewServer(f.broker)
	t.Cleanup(server.Close)
	f.url = server.URL
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	if _, err := deps.Kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "broker"},
		Data:       map[string][]byte{"username": []byte(osbtest.User), "password": []byte(osbtest.Password)},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.start()
	return f
}

func (f *fixture) create(ns *corev1.Namespace) {
	f.t.Helper()
	if _, err := f.deps.Kube.CoreV1().Namespaces().Create(f.t.Context(), ns, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// start starts the controllers, as a new process would.
func (f *fixture) start() {
	f.t.Helper()
	f.controllers = componenttest.Run(f.t, (&Controllers{
		Deps: f.deps, Dialer: outbound.New(outbound.Policy{}), Domain: "cluster.local", Secret: []byte("secret"),
		Timing: Timing{
			MinBackoff: time.Millisecond, MaxBackoff: 20 * time.Millisecond, RequestTimeout: f.timeout, RecheckInterval: 20 * time.Millisecond,
			AbandonDelay: time.Millisecond,
		},
	}).Run)
}

// restart stops the controllers, which cancels all in-flight requests, and starts them again.
func (f *fixture) restart() {
	f.t.Helper()
	f.controllers.Stop()
	f.start()
}

// register creates the broker object and waits for its classes.
func (f *fixture) register() {
	f.t.Helper()
	broker := &v1beta1.ClusterServiceBroker{ObjectMeta: metav1.ObjectMeta{Name: "broker", Generation: 1, Finalizers: []string{v1beta1.Finalizer}}}
	broker.Spec.URL, broker.Spec.RelistBehavior = f.url, v1beta1.RelistBehaviorManual
	broker.Spec.AuthInfo = &v1beta1.ClusterServiceBrokerAuthInfo{
		Basic: &v1beta1.ClusterAuthConfig{SecretRef: &v1beta1.ObjectReference{Namespace: namespace, Name: "broker"}},
	}
	if _, err := f.client.ClusterBrokers().Create(f.t.Context(), broker, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
	eventually.True(f.t, "the catalog is fetched", func() bool {
		broker, err := f.client.ClusterBrokers().Get(f.t.Context(), "broker", metav1.GetOptions{})
		return err == nil && apimeta.IsStatusConditionTrue(broker.Status.Conditions, v1beta1.ConditionReady)
	})
}

// order creates an instance as the API server would store it.
func (f *fixture) order(name, service string) {
	f.t.Helper()
	instance := &v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Generation: 1, Finalizers: []string{v1beta1.Finalizer},
	}}
	instance.Spec.ClusterServiceClassExternalName, instance.Spec.ClusterServicePlanExternalName, instance.Spec.ExternalID = service, "small", "id-"+name
	if _, err := f.client.Instances(namespace).Create(f.t.Context(), instance, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

// bind creates a binding as the API server would store it.
func (f *fixture) bind(name string) {
	f.t.Helper()
	binding := &v1beta1.ServiceBinding{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Generation: 1, Finalizers: []string{v1beta1.Finalizer},
	}}
	binding.Spec.InstanceRef.Name, binding.Spec.SecretName, binding.Spec.ExternalID = name, "credentials-"+name, "binding-"+name
	if _, err := f.client.Bindings(namespace).Create(f.t.Context(), binding, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) instance(name string) *v1beta1.ServiceInstance {
	instance, err := f.client.Instances(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return instance
}

func (f *fixture) waitInstance(name, state string) {
	f.t.Helper()
	eventually.Equal(f.t, "state of instance "+name, func() string {
		if instance := f.instance(name); instance != nil {
			return instance.Status.LastConditionState
		}
		return "deleted"
	}, state)
}

func (f *fixture) waitBinding(name, state string) {
	f.t.Helper()
	eventually.Equal(f.t, "state of binding "+name, func() string { return f.bindingState(name) }, state)
}

func (f *fixture) bindingState(name string) string {
	binding, err := f.client.Bindings(namespace).Get(f.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return "deleted"
	}
	return binding.Status.LastConditionState
}

func (f *fixture) delete(name string) {
	f.t.Helper()
	// The binding might not exist.
	_ = f.client.Bindings(namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{})
	err := f.client.Instances(namespace).Delete(f.t.Context(), name, metav1.DeleteOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
}

// TestFinalFailures checks errors that retries cannot fix.
func TestFinalFailures(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	f.broker.Set(func() {
		f.broker.Refuse = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut {
				return false
			}
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, `{"description": "too large"}`)
			return true
		}
	})
	f.order("refused", "db")
	f.waitInstance("refused", "Failed")
	refused := f.instance("refused").Status
	if refused.DeprovisionStatus != v1beta1.DeletionNotRequired || refused.CurrentOperation != "" || !strings.Contains(refused.Conditions[0].Message, "too large") {
		t.Errorf("after a rejected request, the status is %+v", refused)
	}
	f.broker.Set(func() { f.broker.Refuse, f.broker.Fail = nil, true })
	f.order("failed", "cloud")
	f.waitInstance("failed", "Failed")
	if instance := f.instance("failed"); !instance.Status.OrphanMitigationInProgress {
		t.Errorf("after a failed operation, the status is %+v", instance.Status)
	}
	f.broker.Set(func() { f.broker.Fail = false })
	eventually.True(t, "the orphan is deleted", func() bool {
		orders, deletions := f.broker.Count("id-failed")
		return orders == 1 && deletions == 1 && f.instance("failed").Status.CurrentOperation == ""
	})
	f.delete("refused")
	f.waitInstance("refused", "deleted")
}

func TestPlanLimitsDurationOfOperation(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.broker.Set(func() {
		f.broker.Busy = true
		f.broker.Catalog[1]["plans"].([]map[string]any)[0]["maximum_polling_duration"] = 1
	})
	f.register()
	f.order("slow", "cloud")
	f.waitInstance("slow", "Failed")
	f.broker.Set(func() { f.broker.Busy = false })
	eventually.True(t, "the orphan is deleted", func() bool {
		orders, deletions := f.broker.Count("id-slow")
		return orders == 1 && deletions == 1
	})
}

// TestStatesOfObjectsThatWait checks the status of instances and bindings that are waiting.
func TestStatesOfObjectsThatWait(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.order("early", "db")
	f.waitInstance("early", "ReferencesNonexistentServiceClass")
	f.bind("early")
	f.waitBinding("early", "ErrorInstanceRefsUnresolved")
	f.register()
	f.waitInstance("early", "Ready")
	f.waitBinding("early", "Ready")
	// A secret that the binding does not own is not replaced.
	if _, err := f.deps.Kube.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "credentials-late"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.order("late", "db")
	f.bind("late")
	f.waitBinding("late", "ErrorInjectingBindResult")
	if err := f.deps.Kube.CoreV1().Secrets(namespace).Delete(t.Context(), "credentials-late", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	f.waitBinding("late", "Ready")
}

func TestInstanceInDeletedProjectIsAbandonedWithoutBroker(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	f.order("lost", "db")
	f.waitInstance("lost", "Ready")
	if err := f.client.ClusterBrokers().Delete(t.Context(), "broker", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the broker is deleted with its classes", func() bool {
		_, err := f.client.ClusterBrokers().Get(t.Context(), "broker", metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
	// Delete the instance while the controllers are stopped. Otherwise, controllers that still
	// cache the class would request the deletion from the broker.
	f.controllers.Stop()
	f.delete("lost")
	f.start()
	f.waitInstance("lost", "ReferencesNonexistentServiceClass")
	projects := f.deps.Kube.CoreV1().Namespaces()
	project, err := projects.Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	project.Finalizers = []string{"example.com/content"}
	if _, err = projects.Update(t.Context(), project, metav1.UpdateOptions{}); err == nil {
		err = projects.Delete(t.Context(), namespace, metav1.DeleteOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	f.waitInstance("lost", "deleted")
	if orders, deletions := f.broker.Count("id-lost"); orders != 1 || deletions != 0 {
		t.Errorf("the broker has created %d instances and deleted %d", orders, deletions)
	}
}

// An order must not list classes or plans. Such a list can take up to 100 ms, because the API
// server waits until its cache is up to date.
func TestOrderListsNoOffers(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	lists := func() int {
		requests := f.server.Requests()
		return requests["list clusterserviceclasses"] + requests["list clusterserviceplans"]
	}
	number := 0
	eventually.True(t, "an order without a list", func() bool { // new classes might not be cached
		before, name := lists(), fmt.Sprintf("instance-%d", number)
		number++
		f.order(name, "db")
		f.waitInstance(name, "Ready")
		return lists() == before
	})
}

// TestRemovedServiceIsDeletedWithLastInstance removes a service from a broker's catalog while an
// instance of it exists.
func TestRemovedServiceIsDeletedWithLastInstance(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	f.order("last", "cloud")
	f.waitInstance("last", "Ready")
	f.broker.Set(func() { f.broker.Catalog = osbtest.Services("db") })
	broker, err := f.client.ClusterBrokers().Get(t.Context(), "broker", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	broker.Generation++
	if _, err := f.client.ClusterBrokers().Update(t.Context(), broker, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	class := func() string {
		class, err := f.client.ClusterClasses().Get(t.Context(), objectName("ID-cloud"), metav1.GetOptions{})
		if err != nil {
			return "deleted"
		}
		return fmt.Sprintf("removed: %t", class.Status.RemovedFromBrokerCatalog)
	}
	eventually.Equal(t, "class", class, "removed: true")
	f.order("new", "cloud")
	f.waitInstance("new", "ReferencesDeletedServiceClass")
	f.delete("new")
	f.waitInstance("new", "deleted")
	f.delete("last")
	f.waitInstance("last", "deleted")
	eventually.Equal(t, "class", class, "deleted")
}

// TestHangingBrokerDoesNotDelayOthers provisions instances at a healthy broker while many requests
// to another broker hang.
func TestHangingBrokerDoesNotDelayOthers(t *testing.T) {
	f := newFixture(t, time.Minute)
	f.register()
	var waiting atomic.Int64
	f.broker.Set(func() { f.broker.Catalog = osbtest.Services("db") })
	hanging := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v2/catalog" {
			fmt.Fprint(w, `{"services": [{"id": "h", "name": "h", "description": "h", "plans": [{"id": "hp", "name": "small", "description": "h"}]}]}`)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body) // servers detect disconnects only after reading the body
		waiting.Add(1)
		<-r.Context().Done()
	}))
	t.Cleanup(hanging.Close)
	t.Cleanup(func() { f.controllers.Stop() })
	broker := &v1beta1.ClusterServiceBroker{ObjectMeta: metav1.ObjectMeta{Name: "hanging", Generation: 1}}
	broker.Spec.URL, broker.Spec.RelistBehavior = hanging.URL, v1beta1.RelistBehaviorManual
	if _, err := f.client.ClusterBrokers().Create(t.Context(), broker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range workers + 10 {
		f.order(fmt.Sprintf("hanging-%d", i), "h")
	}
	eventually.True(t, "requests to the hanging broker", func() bool { return waiting.Load() == maxRequests })
	f.order("good", "db")
	f.waitInstance("good", "Ready")
	f.bind("good")
	f.waitBinding("good", "Ready")
	if count := waiting.Load(); count != maxRequests {
		t.Errorf("the hanging broker has %d requests, want %d", count, maxRequests)
	}
}

func TestTimeoutEndsRequest(t *testing.T) {
	f := newFixture(t, 50*time.Millisecond)
	hanging := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	t.Cleanup(hanging.Close)
	broker := &v1beta1.ClusterServiceBroker{ObjectMeta: metav1.ObjectMeta{Name: "hanging", Generation: 1}}
	broker.Spec.URL, broker.Spec.RelistBehavior = hanging.URL, v1beta1.RelistBehaviorManual
	if _, err := f.client.ClusterBrokers().Create(t.Context(), broker, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "condition of the failure", func() bool {
		broker, err := f.client.ClusterBrokers().Get(t.Context(), "hanging", metav1.GetOptions{})
		return err == nil && broker.Status.LastConditionState == errorFetchingCatalog
	})
}
