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

// ranger is the plugin ExternalIPRanger.
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
			return nil, fmt.Errorf("read networkConfig.externalIPNetworkCIDRs: %w", err)
		}
		if rejected {
			r.rejected = append(r.rejected, unmapped(prefix))
			continue
		}
		r.allowed = append(r.allowed, unmapped(prefix))
	}
	return r, nil
}

// Validate refuses addresses of a service that would take traffic which is not the service's: those of the platform,
// and external ones that the configuration doesn't allow.
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
		if len(service.Spec.ExternalIPs) == 0 && service.Spec.LoadBalancerIP == "" || equality.Semantic.DeepEqual(service.Spec, old.Spec) {
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
		if problem := r.checkExternal(text, service, old); problem != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "externalIPs").Index(i), problem))
		}
	}
	if wish := service.Spec.LoadBalancerIP; wish != "" {
		if owner := r.ownerOf(wish); owner != "" {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "loadBalancerIP"), platforms("loadBalancerIP", wish, owner)))
		}
	}
	return errs
}

// checkExternal says what is wrong with an external address. A service keeps one that the configuration no longer
// allows. It keeps one of the platform only as long as nothing else of its spec changes. An address of the ingress
// network is allowed to the service alone that was given it.
func (r *ranger) checkExternal(text string, service, old *corev1.Service) string {
	address, ok := parse(text)
	if !ok {
		return fmt.Sprintf("externalIP %s is not an IP address", text)
	}
	given := slices.ContainsFunc(old.Status.LoadBalancer.Ingress, func(i corev1.LoadBalancerIngress) bool { return i.IP == text })
	kept := slices.Contains(old.Spec.ExternalIPs, text)
	if owner := r.reserved.owner(address); owner != "" {
		return platforms("externalIP", text, owner)
	}
	switch {
	case kept:
		return ""
	case r.ingress.IsValid() && r.ingress.Contains(address):
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer && given {
			return ""
		}
		return fmt.Sprintf("externalIP %s is in networkConfig.ingressIPNetworkCIDR, of which services of type LoadBalancer are given addresses", text)
	case within(r.allowed, address) && !within(r.rejected, address):
		return ""
	case len(r.allowed) == 0:
		return fmt.Sprintf("externalIP %s is not in networkConfig.externalIPNetworkCIDRs, which allows none; use a route, or ask the cluster's administrator to allow a network", text)
	}
	return fmt.Sprintf("externalIP %s is not in networkConfig.externalIPNetworkCIDRs; choose an address that it allows", text)
}

// checkStatus refuses addresses of the platform as those of a load balancer: the service proxy takes what is sent to
// them, too. It leaves one alone that is marked for a load balancer which sends to node ports.
func (r *ranger) checkStatus(service, old *corev1.Service) (errs field.ErrorList) {
	for i, ingress := range service.Status.LoadBalancer.Ingress {
		passes := ingress.IPMode != nil && *ingress.IPMode == corev1.LoadBalancerIPModeProxy
		if ingress.IP == "" || passes || slices.ContainsFunc(old.Status.LoadBalancer.Ingress, func(o corev1.LoadBalancerIngress) bool { return equality.Semantic.DeepEqual(o, ingress) }) {
			continue
		}
		if owner := r.ownerOf(ingress.IP); owner != "" {
			at := field.NewPath("status", "loadBalancer", "ingress").Index(i).Child("ip")
			errs = append(errs, field.Forbidden(at, platforms("address", ingress.IP, owner)+", or set ipMode to Proxy"))
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

// platforms says that an address is the platform's.
func platforms(what, text, owner string) string {
	return fmt.Sprintf("%s %s is in %s, which is not for services; choose an address outside of the cluster", what, text, owner)
}

func within(networks []netip.Prefix, address netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(address) })
}
