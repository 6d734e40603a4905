// Package servicelimit limits the work of the service proxies.
//
// Each node keeps every combination of a service's port and endpoint, in memory and in the kernel.
// Their number is a product: a small object with many addresses and many ports needs gigabytes on
// each node. The plugin limits the sum of the combinations, and of the ports of services, of all
// projects that a user requested.
//
// It also limits the ports of services, because the kubelet creates variables for them for each
// container, and the node ports and load balancers of these projects: a single user could take all
// ports and ingress addresses of the cluster.
//
// The proxies read EndpointSlices, so the plugin also checks the slices that the control plane
// writes. It checks Endpoints, the source of such slices, so that their author sees the error.
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
	// defaultLimit is the limit for the projects of a user without a configuration.
	defaultLimit = 50_000
	// perProject is added to the limit for each project of the user.
	perProject = 200
	// defaultPorts is the limit of ports of services for the projects of a user. The kubelet makes
	// seven variables of each port for each container of the project that starts.
	defaultPorts = 2_000
	// defaultNodePorts is the limit of node ports for the projects of a user. A cluster has 2768 by
	// default.
	defaultNodePorts = 500
)

// Feature returns the plugin.
func Feature() apiserver.Feature {
	shared := newLedgers() // used by the plugins of all configurations
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(config io.Reader) (admission.Interface, error) { return newPlugin(config, shared) },
	}}}
}

// ledgers count the limited combinations, ports and node ports.
type ledgers struct{ combinations, ports, nodePorts *ledger }

func newLedgers() ledgers {
	return ledgers{newLedger(weightOf, perProject), newLedger(portsOf, perProject), newLedger(nodePortsOf, 0)}
}

// use starts to count the existing objects.
func (l ledgers) use(factory informers.SharedInformerFactory) error {
	return errors.Join(l.combinations.use(factory), l.ports.use(factory), l.nodePorts.use(factory))
}

// synced returns whether all existing objects are counted.
func (l ledgers) synced() bool {
	return l.combinations.synced() && l.ports.synced() && l.nodePorts.synced()
}

// plugin is the admission plugin.
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

// SetExternalKubeInformerFactory starts to count the existing objects.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.err = p.ledgers.use(factory); p.err == nil {
		p.SetReadyFunc(p.ledgers.synced)
	}
}

// ValidateInitialization fails without informers.
func (p *plugin) ValidateInitialization() error {
	if p.err == nil && p.ledgers.combinations.namespaces == nil {
		return fmt.Errorf("initialize %s: no informers", Name)
	}
	return p.err
}

// Admit rejects a service that Validate would reject, and reserves nothing. Kubernetes writes to
// etcd for each node port that it allocates, and it allocates between Admit and Validate.
func (p *plugin) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("services") {
		return nil
	}
	return p.checkAll(a, true)
}

// Validate rejects an object that adds combinations, ports or node ports beyond the limit. Objects
// that add none can always change.
func (p *plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || !slices.Contains(counts(), a.GetResource().GroupResource()) {
		return nil
	}
	return p.checkAll(a, a.IsDryRun())
}

// checkAll rejects an object that exceeds a limit. A dry run reserves nothing.
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

// counts returns the resources that count.
func counts() []schema.GroupResource {
	return []schema.GroupResource{corev1.Resource("services"), corev1.Resource("endpoints"), discoveryv1.Resource("endpointslices")}
}

// check rejects an object that exceeds the limit of a ledger.
func (p *plugin) check(a admission.Attributes, l *ledger, limit int, unit, remedy string, dryRun bool) error {
	weight := l.weigh(a.GetObject())
	if weight == 0 || weight <= l.weigh(a.GetOldObject()) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the caches of services are not ready; try again"))
	}
	of := key{kindOf(a.GetObject()), a.GetNamespace(), nameOf(a)}
	r := reservation{counted{sourceOf(a.GetObject(), of), weight}, time.Now().Add(reservationTime)}
	if used, limit, ok := l.add(of, r, limit, dryRun); !ok {
		return admission.NewForbidden(a, fmt.Errorf("the object has %d %s, and the services of its owner's projects have %d others, "+
			"which together exceed the limit of %d: use %s, or ask the administrator to raise the limit of %s", weight, unit, used, limit, remedy, Name))
	}
	return nil
}

// nameOf returns the name of an object. Objects with a generated name get a temporary name, so that
// each object counts until it is in the cache.
func nameOf(a admission.Attributes) string {
	if name := a.GetName(); name != "" {
		return name
	}
	if object, ok := a.GetObject().(metav1.Object); ok && object.GetName() != "" {
		return object.GetName()
	}
	return "generated at " + time.Now().Format(time.RFC3339Nano)
}

// weightOf returns the number of ports of a service, or of combinations of port and endpoint.
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

// portsOf returns the number of ports of a service.
func portsOf(object any) int {
	if service, ok := object.(*corev1.Service); ok {
		return len(service.Spec.Ports)
	}
	return 0
}

// nodePortsOf returns the number of node ports that a service needs. A load balancer also needs an
// address of the ingress network, which counts if it needs no port.
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
			number++ // the port of its health check
		}
		return max(number, 1)
	}
	return 0
}

// kind is the kind of a counted object.
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
