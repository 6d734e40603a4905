package servicelimit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// newTest returns a plugin with the given limit per user, and a client. The plugin counts the
// objects that are stored with the client. The user mallory has the projects evil and worse; the
// projects shop and store have no requester.
func newTest(t *testing.T, limit int) (*plugin, kubernetes.Interface) {
	t.Helper()
	p, err := newPlugin(strings.NewReader(fmt.Sprintf("kind: ServiceLimitConfig\nlimit: %d\nnodePorts: 10", limit)), newLedgers())
	if err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset()
	for project, requester := range map[string]string{"evil": "mallory", "worse": "mallory", "shop": "", "store": ""} {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project, Annotations: map[string]string{"openshift.io/requester": requester}}}
		if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	p.SetExternalKubeInformerFactory(factory)
	if err := p.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return p, client
}

func (p *plugin) admit(t *testing.T, object, old runtime.Object, dryRun bool) bool {
	t.Helper()
	operation := admission.Create
	if old != nil {
		operation = admission.Update
	}
	resource := corev1.Resource("pods")
	switch object.(type) {
	case *corev1.Service:
		resource = corev1.Resource("services")
	case *corev1.Endpoints:
		resource = corev1.Resource("endpoints")
	case *discoveryv1.EndpointSlice:
		resource = discoveryv1.Resource("endpointslices")
	}
	meta := object.(metav1.Object)
	attributes := admission.NewAttributesRecord(object, old, corev1.SchemeGroupVersion.WithKind("x"), meta.GetNamespace(), meta.GetName(),
		resource.WithVersion("v1"), "", operation, &metav1.CreateOptions{}, dryRun, &user.DefaultInfo{Name: "x"})
	early := p.Admit(t.Context(), attributes, nil)
	err := p.Validate(t.Context(), attributes, nil)
	if _, ok := object.(*corev1.Service); (early != nil) != (ok && err != nil) {
		t.Errorf("Admit returns %v, and Validate %v", early, err)
	}
	if err != nil && !strings.Contains(err.Error(), "exceed the limit of") {
		t.Errorf("the reason is %v", err)
	}
	return err == nil
}

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func serviceOf(namespace, name string, ports int) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, name), Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, ports)}}
}

func endpointsOf(namespace, name string, addresses, ports int) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: meta(namespace, name), Subsets: []corev1.EndpointSubset{{
		NotReadyAddresses: make([]corev1.EndpointAddress, addresses), Ports: make([]corev1.EndpointPort, ports),
	}}}
}

func sliceOf(namespace, service, name string, addresses, ports int) *discoveryv1.EndpointSlice {
	object := &discoveryv1.EndpointSlice{
		ObjectMeta: meta(namespace, name), Endpoints: make([]discoveryv1.Endpoint, addresses), Ports: make([]discoveryv1.EndpointPort, ports),
	}
	object.Labels = map[string]string{discoveryv1.LabelServiceName: service}
	return object
}

func TestPortsOfServicesAreLimited(t *testing.T) {
	p, _ := newTest(t, defaultLimit)
	const all = defaultPorts + 2*perProject // mallory has two projects
	if !p.admit(t, serviceOf("evil", "half", all/2), nil, false) || !p.admit(t, serviceOf("worse", "half", all/2), nil, false) {
		t.Fatal("services up to the limit are rejected")
	}
	if p.admit(t, serviceOf("worse", "other", 1), nil, false) {
		t.Error("a port beyond the limit is admitted")
	}
	if !p.admit(t, sliceOf("worse", "half", "half-1", 10, 10), nil, false) {
		t.Error("endpoints are counted as ports of services")
	}
	if !p.admit(t, serviceOf("shop", "other", 1), nil, false) {
		t.Error("the ports of one user are counted for a project of another")
	}
}

func TestCombinationsAreLimited(t *testing.T) {
	const limit = 1000
	const one, two = limit + perProject, limit + 2*perProject // for owners with one and two projects
	for name, c := range map[string]struct {
		objects []runtime.Object
		ok      bool
	}{
		"ports of a service":              {[]runtime.Object{serviceOf("shop", "a", one)}, true},
		"too many ports":                  {[]runtime.Object{serviceOf("shop", "a", one+1)}, false},
		"endpoints":                       {[]runtime.Object{endpointsOf("shop", "a", one/10, 10)}, true},
		"too many endpoints":              {[]runtime.Object{endpointsOf("shop", "a", one/10+1, 10)}, false},
		"slice":                           {[]runtime.Object{sliceOf("shop", "a", "a-1", one/10, 10)}, true},
		"slice that is too large":         {[]runtime.Object{sliceOf("shop", "a", "a-1", one/10+1, 10)}, false},
		"slices":                          {[]runtime.Object{sliceOf("shop", "a", "a-1", one/10, 10), sliceOf("shop", "a", "a-2", 1, 1)}, false},
		"slices of Endpoints":             {[]runtime.Object{endpointsOf("shop", "a", one/10, 10), sliceOf("shop", "a", "a-1", one/20, 10), sliceOf("shop", "a", "a-2", one/20, 10)}, true},
		"more slices than Endpoints":      {[]runtime.Object{endpointsOf("shop", "a", one/10, 10), sliceOf("shop", "a", "a-1", one/10, 10), sliceOf("shop", "a", "a-2", 1, 1)}, false},
		"slices before the Endpoints":     {[]runtime.Object{sliceOf("shop", "a", "a-1", one/10, 10), endpointsOf("shop", "a", one/10, 10)}, true},
		"Endpoints of two services":       {[]runtime.Object{endpointsOf("shop", "a", one/10, 10), endpointsOf("shop", "b", 1, 1)}, false},
		"the sum of kinds":                {[]runtime.Object{serviceOf("shop", "a", one/2), sliceOf("shop", "a", "a-1", one/2+1, 1)}, false},
		"two projects of a user":          {[]runtime.Object{serviceOf("evil", "a", two/2), serviceOf("worse", "a", two/2)}, true},
		"too many ports in two projects":  {[]runtime.Object{serviceOf("evil", "a", two/2), serviceOf("worse", "a", two/2+1)}, false},
		"projects without a user":         {[]runtime.Object{serviceOf("shop", "a", one), serviceOf("store", "a", one)}, true},
		"a new project":                   {[]runtime.Object{serviceOf("new", "a", one)}, true},
		"too many ports in a new project": {[]runtime.Object{serviceOf("new", "a", one+1)}, false},
		"another kind":                    {[]runtime.Object{&corev1.Pod{ObjectMeta: meta("shop", "a")}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newTest(t, limit)
			for i, object := range c.objects {
				if ok := p.admit(t, object, nil, false); ok != (c.ok || i < len(c.objects)-1) {
					t.Errorf("object %d is admitted: %t", i, ok)
				}
			}
		})
	}
}

func TestStoredObjectsCountOnce(t *testing.T) {
	const limit = 1000 - perProject
	p, client := newTest(t, limit)
	stored := sliceOf("shop", "a", "a-1", 100, 9)
	if p.admit(t, sliceOf("shop", "b", "b-1", 1001, 1), nil, true) || !p.admit(t, sliceOf("shop", "b", "b-1", 1000, 1), nil, true) {
		t.Fatal("a dry run has the wrong result")
	}
	if !p.admit(t, stored, nil, false) {
		t.Fatal("a slice is rejected after a dry run")
	}
	if _, err := client.DiscoveryV1().EndpointSlices("shop").Create(t.Context(), stored, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		p.ledgers.combinations.mu.Lock()
		defer p.ledgers.combinations.mu.Unlock()
		return p.ledgers.combinations.sums["shop"]
	}
	eventually.Equal(t, "stored combinations", count, 900)
	if p.admit(t, sliceOf("shop", "b", "b-1", 101, 1), nil, false) {
		t.Error("a stored slice is not counted")
	}
	if p.admit(t, sliceOf("shop", "a", "a-1", 100, 11), stored, false) || !p.admit(t, sliceOf("shop", "a", "a-1", 100, 10), stored, true) {
		t.Error("a change of a stored slice has the wrong result")
	}
	for range 2 {
		if !p.admit(t, sliceOf("shop", "a", "a-1", 90, 9), sliceOf("shop", "a", "a-1", 5000, 9), false) {
			t.Error("a slice cannot become smaller")
		}
	}
	if err := client.DiscoveryV1().EndpointSlices("shop").Delete(t.Context(), stored.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "combinations after the deletion", count, 0)
	if len(p.ledgers.combinations.stored)+len(p.ledgers.combinations.bySource)+len(p.ledgers.combinations.reserved["shop"]) > 0 {
		t.Errorf("the ledger keeps %v, %v and %v", p.ledgers.combinations.stored, p.ledgers.combinations.bySource, p.ledgers.combinations.reserved)
	}
}

func TestNodePortsAreLimited(t *testing.T) {
	of := func(namespace, name string, ports int, kind corev1.ServiceType, allocate *bool) *corev1.Service {
		s := serviceOf(namespace, name, ports)
		s.Spec.Type, s.Spec.AllocateLoadBalancerNodePorts = kind, allocate
		return s
	}
	local := of("store", "b", 1, corev1.ServiceTypeLoadBalancer, new(false))
	local.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	withPorts := of("store", "b", 10, corev1.ServiceTypeLoadBalancer, nil)
	withPorts.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
	p, _ := newTest(t, 1000)
	for i, c := range []struct {
		service *corev1.Service
		ok      bool
	}{
		{withPorts, false},
		{of("store", "a", 9, corev1.ServiceTypeNodePort, nil), true},
		{local, true},
		{of("store", "c", 1, corev1.ServiceTypeLoadBalancer, new(false)), false},
		{of("shop", "a", 11, corev1.ServiceTypeNodePort, nil), false},
		{of("shop", "a", 11, corev1.ServiceTypeLoadBalancer, nil), false},
		{of("shop", "a", 11, corev1.ServiceTypeLoadBalancer, new(false)), true},
		{of("shop", "b", 11, corev1.ServiceTypeClusterIP, nil), true},
		{of("shop", "c", 9, corev1.ServiceTypeNodePort, nil), true},
		{of("shop", "d", 1, corev1.ServiceTypeNodePort, nil), false},
		{of("evil", "a", 6, corev1.ServiceTypeNodePort, nil), true},
		{of("worse", "a", 5, corev1.ServiceTypeNodePort, nil), false},
		{of("worse", "a", 4, corev1.ServiceTypeNodePort, nil), true},
	} {
		if ok := p.admit(t, c.service, nil, false); ok != c.ok {
			t.Errorf("service %d is admitted: %t", i, ok)
		}
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	for _, text := range []string{"kind: ServiceLimitConfig\nlimit: 0", "kind: ServiceLimitConfig\nlimit: -5", "nodePorts: 0", "kind: Other", "limit: many"} {
		if _, err := newPlugin(strings.NewReader(text), newLedgers()); err == nil || !strings.Contains(err.Error(), Name) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if p, err := newPlugin(nil, newLedgers()); err != nil || p.limit != defaultLimit || p.nodePorts != defaultNodePorts {
		t.Errorf("without a configuration: %+v, %v", p, err)
	} else if err := p.ValidateInitialization(); err == nil {
		t.Error("no error without informers")
	}
}
