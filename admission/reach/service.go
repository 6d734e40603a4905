package reach

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
)

// ranger is the ExternalIPRanger plugin.
type ranger struct {
	plugin
	allowed, rejected []netip.Prefix
	ingress           netip.Prefix
}

var _ admission.ValidationInterface = &ranger{}

func newRanger(external []string, ingress netip.Prefix, reserved *reserved) (*ranger, error) {
	r := &ranger{plugin: newPlugin(reserved), ingress: ingress}
	for _, text := range external {
		network, rejected := strings.CutPrefix(text, "!")
		prefix, err := netip.ParsePrefix(network)
		if err != nil {
			return nil, fmt.Errorf("parse networkConfig.externalIPNetworkCIDRs: %w", err)
		}
		if rejected {
			r.rejected = append(r.rejected, unmapped(prefix))
			continue
		}
		r.allowed = append(r.allowed, unmapped(prefix))
	}
	return r, nil
}

// Validate rejects addresses that a service could use to hijack traffic: platform addresses, and
// external addresses that the configuration does not allow.
func (r *ranger) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	service, ok := a.GetObject().(*corev1.Service)
	if !ok {
		return nil
	}
	old, ok := a.GetOldObject().(*corev1.Service)
	if !ok {
		old = &corev1.Service{}
	}
	var check func(service, old *corev1.Service) field.ErrorList
	switch a.GetSubresource() {
	case "":
		unchanged := equality.Semantic.DeepEqual(service.Spec, old.Spec)
		if unchanged || len(service.Spec.ExternalIPs) == 0 && service.Spec.LoadBalancerIP == "" {
			return nil
		}
		check = r.checkSpec
	case "status":
		if equality.Semantic.DeepEqual(service.Status.LoadBalancer, old.Status.LoadBalancer) {
			return nil
		}
		check = r.checkStatus
	default:
		return nil
	}
	if err := r.ready(a); err != nil {
		return err
	}
	if errs := check(service, old); len(errs) > 0 {
		return admission.NewForbidden(a, errors.Join(errs.ToAggregate().Errors()...))
	}
	return nil
}

func (r *ranger) checkSpec(service, old *corev1.Service) (errs field.ErrorList) {
	for i, text := range service.Spec.ExternalIPs {
		if message := r.checkExternal(text, service, old); message != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "externalIPs").Index(i), message))
		}
	}
	if requested := service.Spec.LoadBalancerIP; requested != "" {
		if owner := r.ownerOf(requested); owner != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "loadBalancerIP"),
				platforms("loadBalancerIP", requested, owner)))
		}
	}
	return errs
}

// checkExternal returns the reason why an external address is not allowed, or "". A service can
// keep an address that the configuration no longer allows. It can keep a platform address only
// until another field of its spec changes. An address in the ingress network is allowed only for
// the service that it is assigned to.
func (r *ranger) checkExternal(text string, service, old *corev1.Service) string {
	address, ok := parse(text)
	if !ok {
		return fmt.Sprintf("externalIP %s is not an IP address", text)
	}
	assigned := slices.ContainsFunc(old.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool {
		return i.IP == text
	})
	existing := slices.Contains(old.Spec.ExternalIPs, text)
	if owner := r.reserved.owner(address); owner != "" {
		return platforms("externalIP", text, owner)
	}
	switch {
	case existing:
		return ""
	case r.ingress.IsValid() && r.ingress.Contains(address):
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer && assigned {
			return ""
		}
		return fmt.Sprintf("externalIP %s is in networkConfig.ingressIPNetworkCIDR, from which services of type LoadBalancer get addresses", text)
	case within(r.allowed, address) && !within(r.rejected, address):
		return ""
	case len(r.allowed) == 0:
		return fmt.Sprintf("externalIP %s is not in networkConfig.externalIPNetworkCIDRs, which allows none; "+
			"use a route, or ask the cluster's administrator to allow a network", text)
	}
	return fmt.Sprintf("externalIP %s is not in networkConfig.externalIPNetworkCIDRs; choose an address that it allows", text)
}

// checkStatus rejects platform addresses as load balancer addresses, because the service proxy also
// redirects traffic for load balancer addresses. It accepts an address with ipMode Proxy: the
// service proxy ignores the address, because the load balancer sends traffic to node ports.
func (r *ranger) checkStatus(service, old *corev1.Service) (errs field.ErrorList) {
	for i, ingress := range service.Status.LoadBalancer.Ingress {
		passes := ingress.IPMode != nil && *ingress.IPMode == corev1.LoadBalancerIPModeProxy
		unchanged := slices.ContainsFunc(old.Status.LoadBalancer.Ingress, func(o corev1.LoadBalancerIngress) bool {
			return equality.Semantic.DeepEqual(o, ingress)
		})
		if ingress.IP == "" || passes || unchanged {
			continue
		}
		if owner := r.ownerOf(ingress.IP); owner != "" {
			path := field.NewPath("status", "loadBalancer", "ingress").Index(i).Child("ip")
			errs = append(errs, field.Forbidden(path, platforms("address", ingress.IP, owner)+", or set ipMode to Proxy"))
		}
	}
	return errs
}

func (r *ranger) ownerOf(text string) string {
	address, ok := parse(text)
	if !ok {
		return ""
	}
	return r.reserved.owner(address)
}

// platforms returns the error message for a platform address.
func platforms(kind, text, owner string) string {
	return fmt.Sprintf("%s %s is in %s, which is not for services; choose an address outside the cluster", kind, text, owner)
}

func within(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
