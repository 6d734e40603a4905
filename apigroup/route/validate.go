package route

import (
	"context"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Limits on routes. Source: the documentation's section on alternate backends and weights.
const (
	maxWeight     = 256
	maxAlternates = 3
)

func validate(_ context.Context, route, _ *routev1.Route) (errs field.ErrorList) {
	spec, at := &route.Spec, field.NewPath("spec")
	if len(route.Name) > validation.DNS1123LabelMaxLength {
		errs = append(errs, field.TooLong(field.NewPath("metadata", "name"), route.Name, validation.DNS1123LabelMaxLength))
	}
	strict := route.Annotations[routev1.AllowNonDNSCompliantHostAnnotation] != "true"
	errs = append(errs, validateHost(spec.Host, at.Child("host"), strict)...)
	errs = append(errs, validateHost(spec.Subdomain, at.Child("subdomain"), strict)...)
	if spec.Path != "" && !strings.HasPrefix(spec.Path, "/") {
		errs = append(errs, field.Invalid(at.Child("path"), spec.Path, "path must begin with /"))
	}
	errs = append(errs, validateTargets(spec, at)...)
	if spec.Port != nil {
		errs = append(errs, validatePort(spec.Port.TargetPort, at.Child("port", "targetPort"))...)
	}
	errs = append(errs, validateWildcard(spec.Host, spec.WildcardPolicy, at.Child("wildcardPolicy"))...)
	return append(errs, validateTLS(spec, at)...)
}

func validateHost(host string, at *field.Path, strict bool) (errs field.ErrorList) {
	if host == "" {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		errs = append(errs, field.Invalid(at, host, "host must conform to DNS 952 subdomain conventions"))
	}
	for _, label := range strings.Split(host, ".") {
		if strict && len(label) > validation.DNS1123LabelMaxLength {
			errs = append(errs, field.Invalid(at, host, "must be no more than 63 characters between two dots"))
		}
	}
	return errs
}

func validateTargets(spec *routev1.RouteSpec, at *field.Path) field.ErrorList {
	errs := validateTarget(&spec.To, at.Child("to"))
	if len(spec.AlternateBackends) > maxAlternates {
		errs = append(errs, field.TooMany(at.Child("alternateBackends"), len(spec.AlternateBackends), maxAlternates))
	}
	for i := range spec.AlternateBackends {
		errs = append(errs, validateTarget(&spec.AlternateBackends[i], at.Child("alternateBackends").Index(i))...)
	}
	return errs
}

func validateTarget(target *routev1.RouteTargetReference, at *field.Path) (errs field.ErrorList) {
	if target.Name == "" {
		errs = append(errs, field.Required(at.Child("name"), "name the service"))
	}
	if target.Kind != "Service" {
		errs = append(errs, field.NotSupported(at.Child("kind"), target.Kind, []string{"Service"}))
	}
	if target.Weight != nil && (*target.Weight < 0 || *target.Weight > maxWeight) {
		errs = append(errs, field.Invalid(at.Child("weight"), *target.Weight, "weight must be an integer between 0 and 256"))
	}
	return errs
}

func validatePort(port intstr.IntOrString, at *field.Path) field.ErrorList {
	switch {
	case port.Type == intstr.String && port.StrVal == "", port.Type == intstr.Int && port.IntVal == 0:
		return field.ErrorList{field.Required(at, "name a port of the service, or its number")}
	case port.Type == intstr.Int && len(validation.IsValidPortNum(port.IntValue())) > 0:
		return field.ErrorList{field.Invalid(at, port.IntVal, "must be between 1 and 65535")}
	}
	return nil
}

func validateWildcard(host string, policy routev1.WildcardPolicyType, at *field.Path) field.ErrorList {
	switch policy {
	case "", routev1.WildcardPolicyNone:
	case routev1.WildcardPolicySubdomain:
		if host == "" {
			return field.ErrorList{field.Invalid(at, policy, "host name not specified for wildcard policy")}
		}
	default:
		return field.ErrorList{field.NotSupported(at, policy, []routev1.WildcardPolicyType{routev1.WildcardPolicyNone, routev1.WildcardPolicySubdomain})}
	}
	return nil
}

// insecure maps TLS termination types to the supported policies for plain HTTP.
var insecure = map[routev1.TLSTerminationType][]routev1.InsecureEdgeTerminationPolicyType{
	routev1.TLSTerminationEdge:        {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyAllow, routev1.InsecureEdgeTerminationPolicyRedirect},
	routev1.TLSTerminationReencrypt:   {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyAllow, routev1.InsecureEdgeTerminationPolicyRedirect},
	routev1.TLSTerminationPassthrough: {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyRedirect},
}

func validateTLS(spec *routev1.RouteSpec, at *field.Path) (errs field.ErrorList) {
	tls, in := spec.TLS, at.Child("tls")
	if tls == nil {
		return nil
	}
	refuse := func(name, value, reason string) {
		if value != "" {
			errs = append(errs, field.Invalid(in.Child(name), "redacted", reason))
		}
	}
	switch tls.Termination {
	case routev1.TLSTerminationReencrypt:
	case routev1.TLSTerminationEdge:
		refuse("destinationCACertificate", tls.DestinationCACertificate, "edge termination does not support destination certificates")
	case routev1.TLSTerminationPassthrough:
		if spec.Path != "" {
			errs = append(errs, field.Invalid(at.Child("path"), spec.Path, "passthrough termination does not support paths"))
		}
		const reason = "passthrough termination does not support certificates"
		refuse("certificate", tls.Certificate, reason)
		refuse("key", tls.Key, reason)
		refuse("caCertificate", tls.CACertificate, reason)
		refuse("destinationCACertificate", tls.DestinationCACertificate, reason)
	default:
		return append(errs, field.NotSupported(in.Child("termination"), tls.Termination, []routev1.TLSTerminationType{
			routev1.TLSTerminationEdge, routev1.TLSTerminationPassthrough, routev1.TLSTerminationReencrypt}))
	}
	if policy := tls.InsecureEdgeTerminationPolicy; policy != "" && !slices.Contains(insecure[tls.Termination], policy) {
		errs = append(errs, field.NotSupported(in.Child("insecureEdgeTerminationPolicy"), policy, insecure[tls.Termination]))
	}
	return errs
}

// validateStatus validates the status, which routers write.
func validateStatus(_ context.Context, route, _ *routev1.Route) (errs field.ErrorList) {
	for i, ingress := range route.Status.Ingress {
		at := field.NewPath("status", "ingress").Index(i)
		errs = append(errs, validateWildcard(ingress.Host, ingress.WildcardPolicy, at.Child("wildcardPolicy"))...)
	}
	return errs
}
