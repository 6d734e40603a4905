// Package servicelimit limits the load on the service proxies.
//
// Each node keeps every combination of service port and endpoint in memory and in the kernel. The
// number of combinations is a product: a small object with many addresses and many ports requires
// gigabytes on each node. The plugin limits the total number of combinations in all projects that a
// user requested.
//
// It also limits the number of service ports in these projects, because the kubelet creates
// environment variables for each service port in each container. Finally, it limits the number of
// node ports and load balancers, because a single user could otherwise take all of the cluster's
// node ports and ingress addresses.
//
// The proxies read EndpointSlices, so the plugin also checks the EndpointSlices that the control
// plane writes. It checks Endpoints objects, from which the control plane creates EndpointSlices,
// so that the author of an Endpoints object sees the error.
package servicelimit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in the configuration.
const Name = "slipway.io/ServiceLimit"

const (
	// defaultLimit is the default limit on combinations in a user's projects.
	defaultLimit = 50_000
	// perProject is added to the limit for each of the user's projects.
	perProject = 200
	// defaultPorts is the default limit on service ports in a user's projects. For each service
	// port, the kubelet creates seven environment variables in each container that starts in the
	// project.
	defaultPorts = 2_000
	// defaultNodePorts is the default limit on node ports in a user's projects. A cluster has 2768
	// node ports by default.
	defaultNodePorts = 500
)

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	shared := newLedgers() // the plugins of all configurations share the ledgers
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(config io.Reader) (admission.Interface, error) { return newPlugin(config, shared) },
	}}}
}

// ledgers holds the ledgers of combinations, ports and node ports.
type ledgers struct{ combinations, ports, nodePorts *ledger }

func newLedgers() ledgers {
	return ledgers{newLedger(weightOf, perProject), newLedger(portsOf, perProject), newLedger(nodePortsOf, 0)}
}

// use starts counting the existing objects.
func (l ledgers) use(factory informers.SharedInformerFactory) error {
	return errors.Join(l.combinations.use(factory), l.ports.use(factory), l.nodePorts.use(factory))
}

// synced reports whether all existing objects have been counted.
func (l ledgers) synced() bool {
	return l.combinations.synced() && l.ports.synced() && l.nodePorts.synced()
}

type plugin struct {
	*admission.Handler
	limit, ports, nodePorts int
	ledgers                 ledgers
	err                     error
}

var (
	_ admission.MutationInterface   = &plugin{}
	_ admission.ValidationInterface = &plugin{}
)

func newPlugin(reader io.Reader, counts ledgers) (*plugin, error) {
	config := struct {
		metav1.TypeMeta `json:",inline"`
		Limit           *int `json:"limit"`
		Ports           *int `json:"ports"`
		NodePorts       *int `json:"nodePorts"`
	}{}
	if err := apiserver.DecodeConfig(reader, "ServiceLimitConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", Name, err)
	}
	p := &plugin{
		Handler: admission.NewHandler(admission.Create, admission.Update),
		limit:   defaultLimit, ports: defaultPorts, nodePorts: defaultNodePorts, ledgers: counts,
	}
	for field, setting := range map[string]struct{ from, to *int }{
		"limit": {config.Limit, &p.limit}, "ports": {config.Ports, &p.ports}, "nodePorts": {config.NodePorts, &p.nodePorts},
	} {
		if setting.from == nil {
			continue
		}
		if *setting.to = *setting.from; *setting.to <= 0 {
			return nil, fmt.Errorf("read configuration of %s: %s is %d, must be positive", Name, field, *setting.to)
		}
	}
	return p, nil
}

// SetExternalKubeInformerFactory starts counting the existing objects.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.err = p.ledgers.use(factory); p.err == nil {
		p.SetReadyFunc(p.ledgers.synced)
	}
}

// ValidateInitialization returns an error if there are no informers.
func (p *plugin) ValidateInitialization() error {
	if p.err == nil && p.ledgers.combinations.namespaces == nil {
		return fmt.Errorf("initialize %s: no informers", Name)
	}
	return p.err
}

// Admit rejects a service that Validate would reject, before the service causes writes to etcd.
// Kubernetes allocates node ports between Admit and Validate, and each allocation is a write. Admit
// does not reserve anything.
func (p *plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("services") {
		return nil
	}
	return p.checkAll(a, true)
}

// Validate rejects an object that adds combinations, ports or node ports beyond the limit. Updates
// that add none of these are always allowed.
func (p *plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || !slices.Contains(counts(), a.GetResource().GroupResource()) {
		return nil
	}
	return p.checkAll(a, a.IsDryRun())
}

// checkAll rejects an object that exceeds a limit. A dry run does not reserve anything.
func (p *plugin) checkAll(a admission.Attributes, dryRun bool) error {
	for _, c := range []struct {
		ledger       *ledger
		limit        int
		unit, remedy string
	}{
		{p.ledgers.combinations, p.limit, "combinations of port and endpoint", "fewer ports or addresses"},
		{p.ledgers.ports, p.ports, "ports", "fewer ports"},
		{p.ledgers.nodePorts, p.nodePorts, "node ports or load balancers", "services of type ClusterIP, or routes"},
	} {
		if err := p.check(a, c.ledger, c.limit, c.unit, c.remedy, dryRun); err != nil {
			return err
		}
	}
	return nil
}

// counts returns the resources whose objects the plugin counts.
func counts() []schema.GroupResource {
	return []schema.GroupResource{corev1.Resource("services"), corev1.Resource("endpoints"), discoveryv1.Resource("endpointslices")}
}

// check rejects an object that exceeds a ledger's limit.
func (p *plugin) check(a admission.Attributes, l *ledger, limit int, unit, remedy string, dryRun bool) error {
	weight := l.weigh(a.GetObject())
	if weight == 0 || weight <= l.weigh(a.GetOldObject()) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the service caches are not ready; try again"))
	}
	of := key{kindOf(a.GetObject()), a.GetNamespace(), nameOf(a)}
	r := reservation{counted{sourceOf(a.GetObject(), of), weight}, time.Now().Add(reservationTime)}
	if used, limit, ok := l.add(of, r, limit, dryRun); !ok {
		return admission.NewForbidden(a, fmt.Errorf("the object has %d %s, and the services of its owner's projects have %d others, "+
			"which together exceed the limit of %d; use %s, or ask the administrator to raise the limit of %s", weight, unit, used, limit, remedy, Name))
	}
	return nil
}

// nameOf returns the name of an object. For an object with a generated name, it returns a temporary
// name, so that the object counts toward the limit until it is in the cache.
func nameOf(a admission.Attributes) string {
	if name := a.GetName(); name != "" {
		return name
	}
	if object, ok := a.GetObject().(metav1.Object); ok && object.GetName() != "" {
		return object.GetName()
	}
	return "generated at " + time.Now().Format(time.RFC3339Nano)
}

// weightOf returns the number of a service's ports. For an Endpoints object or EndpointSlice, it
// returns the number of combinations of ports and endpoints.
func weightOf(object any) (weight int) {
	switch object := object.(type) {
	case *corev1.Service:
		return len(object.Spec.Ports)
	case *corev1.Endpoints:
		for _, subset := range object.Subsets {
			weight += (len(subset.Addresses) + len(subset.NotReadyAddresses)) * len(subset.Ports)
		}
	case *discoveryv1.EndpointSlice:
		return len(object.Endpoints) * len(object.Ports)
	}
	return weight
}

// portsOf returns the number of a service's ports, or 0 for other objects.
func portsOf(object any) int {
	if service, ok := object.(*corev1.Service); ok {
		return len(service.Spec.Ports)
	}
	return 0
}

// nodePortsOf returns the number of node ports that a service requires. For a load balancer without
// node ports, it returns 1, because the load balancer requires an address from the ingress network.
func nodePortsOf(object any) int {
	service, ok := object.(*corev1.Service)
	if !ok {
		return 0
	}
	spec := service.Spec
	switch spec.Type {
	case corev1.ServiceTypeNodePort:
		return len(spec.Ports)
	case corev1.ServiceTypeLoadBalancer:
		number := 0
		if spec.AllocateLoadBalancerNodePorts == nil || *spec.AllocateLoadBalancerNodePorts {
			number = len(spec.Ports)
		}
		if spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			number++ // count the health check port
		}
		return max(number, 1)
	}
	return 0
}

// kind identifies the resource of a counted object.
type kind string

const (
	service   kind = "Service"
	endpoints kind = "Endpoints"
	slice     kind = "EndpointSlice"
)

func kindOf(object any) kind {
	switch object.(type) {
	case *corev1.Service:
		return service
	case *corev1.Endpoints:
		return endpoints
	}
	return slice
}
