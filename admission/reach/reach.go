// Package reach holds admission plug-ins that keep people from sending traffic where it does not belong: services may have external
// addresses of the allowed networks only (ExternalIPRanger), and endpoints may not point into the cluster's own networks without the
// right to (RestrictedEndpointsAdmission).
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.3.2 and 3.3.5.
package reach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apiserver"
)

// The plug-ins' names as the configuration has them.
const (
	ExternalIPRanger    = "ExternalIPRanger"
	RestrictedEndpoints = "openshift.io/RestrictedEndpointsAdmission"
)

// Feature has both plug-ins. external are networks that external addresses may come from, or with a ! in front may not; ingress is the network of
// which services of type LoadBalancer get addresses, if it is valid; restricted are the cluster's own networks of pods and services.
func Feature(external []string, ingress netip.Prefix, restricted []netip.Prefix) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{
		{Name: ExternalIPRanger, New: func(io.Reader) (admission.Interface, error) { return newRanger(external, ingress) }},
		{Name: RestrictedEndpoints, New: func(io.Reader) (admission.Interface, error) {
			return &endpoints{Handler: admission.NewHandler(admission.Create, admission.Update), restricted: restricted}, nil
		}},
	}}
}

// ranger is the plug-in ExternalIPRanger.
type ranger struct {
	*admission.Handler
	allowed, rejected []netip.Prefix
	ingress           netip.Prefix
}

var _ admission.ValidationInterface = &ranger{}

func newRanger(external []string, ingress netip.Prefix) (*ranger, error) {
	r := &ranger{Handler: admission.NewHandler(admission.Create, admission.Update), ingress: ingress}
	for _, text := range external {
		network, rejected := strings.CutPrefix(text, "!")
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return nil, fmt.Errorf("read networkConfig.externalIPNetworkCIDRs: %w", err)
		}
		if rejected {
			r.rejected = append(r.rejected, prefix)
			continue
		}
		r.allowed = append(r.allowed, prefix)
	}
	return r, nil
}

// Validate refuses an external address outside of the networks, unless the service had it before. An address of the ingress network is allowed to
// the service alone that was given it.
func (r *ranger) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	service, ok := a.GetObject().(*corev1.Service)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	var before, given []string
	if old, ok := a.GetOldObject().(*corev1.Service); ok {
		before = old.Spec.ExternalIPs
		for _, ingress := range old.Status.LoadBalancer.Ingress {
			given = append(given, ingress.IP)
		}
	}
	var problems []error
	for i, text := range service.Spec.ExternalIPs {
		problem := fmt.Sprintf("externalIP %s is not in networkConfig.externalIPNetworkCIDRs", text)
		address, err := netip.ParseAddr(text)
		switch {
		case slices.Contains(before, text):
			continue
		case err == nil && r.ingress.IsValid() && r.ingress.Contains(address):
			if service.Spec.Type == corev1.ServiceTypeLoadBalancer && slices.Contains(given, text) {
				continue
			}
			problem = fmt.Sprintf("externalIP %s is in networkConfig.ingressIPNetworkCIDR, of which services of type LoadBalancer are given addresses", text)
		case err == nil && within(r.allowed, address) && !within(r.rejected, address):
			continue
		}
		problems = append(problems, field.Forbidden(field.NewPath("spec", "externalIPs").Index(i), problem))
	}
	if len(problems) > 0 {
		return admission.NewForbidden(a, errors.Join(problems...))
	}
	return nil
}

func within(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}

// endpoints is the plug-in RestrictedEndpointsAdmission.
type endpoints struct {
	*admission.Handler
	restricted []netip.Prefix
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &endpoints{}

// SetAuthorizer gives the API server's authorizer.
func (e *endpoints) SetAuthorizer(a authorizer.Authorizer) { e.authorizer = a }

// ValidateInitialization says whether the authorizer was given.
func (e *endpoints) ValidateInitialization() error {
	if e.authorizer == nil {
		return fmt.Errorf("%s was given no authorizer", RestrictedEndpoints)
	}
	return nil
}

// Validate refuses new addresses in the cluster's own networks to those who may not create endpoints/restricted.
func (e *endpoints) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" {
		return nil
	}
	var before []string
	if a.GetOldObject() != nil {
		before = addresses(a.GetOldObject())
	}
	restricted := slices.DeleteFunc(addresses(a.GetObject()), func(text string) bool {
		address, err := netip.ParseAddr(text)
		return err != nil || slices.Contains(before, text) || !within(e.restricted, address)
	})
	if len(restricted) == 0 {
		return nil
	}
	decision, _, err := e.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "create", Namespace: a.GetNamespace(), Resource: a.GetResource().Resource, Subresource: "restricted",
		APIGroup: a.GetResource().Group, Name: a.GetName(), ResourceRequest: true,
	})
	if err == nil && decision == authorizer.DecisionAllow {
		return nil
	}
	return admission.NewForbidden(a, fmt.Errorf("endpoint address %s is not allowed: it is in a network of the cluster", restricted[0]))
}

// addresses are those that an object sends traffic to: Endpoints or an EndpointSlice.
func addresses(object any) (found []string) {
	switch targets := object.(type) {
	case *corev1.Endpoints:
		for _, subset := range targets.Subsets {
			for _, address := range slices.Concat(subset.Addresses, subset.NotReadyAddresses) {
				found = append(found, address.IP)
			}
		}
	case *discoveryv1.EndpointSlice:
		for _, endpoint := range targets.Endpoints {
			found = append(found, endpoint.Addresses...)
		}
	}
	return found
}
