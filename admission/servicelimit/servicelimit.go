// Package servicelimit limits the work of the service proxies.
//
// Each node keeps every combination of a service's port and endpoint, in memory and in the kernel.
// Their number is a product: a small object with many addresses and many ports needs gigabytes on
// each node. The plugin limits the sum of the combinations, and of the ports of services, of all
// projects that a user requested.
//
// EndpointSlices are what the proxies read, so the plugin also checks those that the control plane
// writes. It checks Endpoints, the source of such slices, so that their author sees the error.
package servicelimit

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

// Feature returns the plugin.
func Feature() apiserver.Feature {
	counts := newLedger() // shared by the plugins of all configurations
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(config io.Reader) (admission.Interface, error) { return newPlugin(config, counts) },
	}}}
}

// plugin is the admission plugin.
type plugin struct {
	*admission.Handler
	limit  int
	ledger *ledger
	err    error
}

var _ admission.ValidationInterface = &plugin{}

func newPlugin(reader io.Reader, counts *ledger) (*plugin, error) {
	config := struct {
		metav1.TypeMeta `json:",inline"`
		Limit           *int `json:"limit"`
	}{}
	if err := apiserver.DecodeConfig(reader, "ServiceLimitConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", Name, err)
	}
	p := &plugin{Handler: admission.NewHandler(admission.Create, admission.Update), limit: defaultLimit, ledger: counts}
	if config.Limit != nil {
		if p.limit = *config.Limit; p.limit <= 0 {
			return nil, fmt.Errorf("read configuration of %s: limit is %d, must be positive", Name, p.limit)
		}
	}
	return p, nil
}

// SetExternalKubeInformerFactory starts to count what exists.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	if p.err = p.ledger.use(factory); p.err == nil {
		p.SetReadyFunc(p.ledger.synced)
	}
}

// ValidateInitialization fails without informers.
func (p *plugin) ValidateInitialization() error {
	if p.err == nil && p.ledger.namespaces == nil {
		return fmt.Errorf("initialize %s: no informers", Name)
	}
	return p.err
}

// Validate rejects an object that adds combinations beyond the limit. Objects that add none can
// always change.
func (p *plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	weight := weightOf(a.GetObject())
	if weight == 0 || weight <= weightOf(a.GetOldObject()) {
		return nil
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the caches of services are not ready; try again"))
	}
	of := key{kindOf(a.GetObject()), a.GetNamespace(), nameOf(a)}
	r := reservation{counted{sourceOf(a.GetObject(), of), weight}, time.Now().Add(reservationTime)}
	if used, limit, ok := p.ledger.add(of, r, p.limit, a.IsDryRun()); !ok {
		return admission.NewForbidden(a, fmt.Errorf("the object has %d combinations of port and endpoint, and the services of its owner's projects have %d others, "+
			"which together exceed the limit of %d: use fewer ports or addresses, or ask the administrator to raise the limit of %s", weight, used, limit, Name))
	}
	return nil
}

// nameOf returns the name of an object. Objects with a generated name get a temporary one, so that
// each counts until the cache has it.
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
