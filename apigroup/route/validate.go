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

// Limits of routes, of the section on alternate backends and weights.
const (
	maxWeight     = 256
	maxAlternates = 3
)

func validate(_ context.Context, route, _ *routev1.Route) (problems field.ErrorList) {
	spec, at := &route.Spec, field.NewPath("spec")
	if len(route.Name) > validation.DNS1123LabelMaxLength {
		problems = append(problems, field.TooLong(field.NewPath("metadata", "name"), route.Name, validation.DNS1123LabelMaxLength))
	}
	strictly := route.Annotations[routev1.AllowNonDNSCompliantHostAnnotation] != "true"
	problems = append(problems, validateHost(spec.Host, at.Child("host"), strictly)...)
	problems = append(problems, validateHost(spec.Subdomain, at.Child("subdomain"), strictly)...)
	if spec.Path != "" && !strings.HasPrefix(spec.Path, "/") {
		problems = append(problems, field.Invalid(at.Child("path"), spec.Path, "path must begin with /"))
	}
	problems = append(problems, validateTargets(spec, at)...)
	if spec.Port != nil {
		problems = append(problems, validatePort(spec.Port.TargetPort, at.Child("port", "targetPort"))...)
	}
	problems = append(problems, validateWildcard(spec.Host, spec.WildcardPolicy, at.Child("wildcardPolicy"))...)
	return append(problems, validateTLS(spec, at)...)
}

func validateHost(host string, at *field.Path, strictly bool) (problems field.ErrorList) {
	if host == "" {
		return nil
	}
	if len(validation.IsDNS1123Subdomain(host)) > 0 {
		problems = append(problems, field.Invalid(at, host, "host must conform to DNS 952 subdomain conventions"))
	}
	for _, label := range strings.Split(host, ".") {
		if strictly && len(label) > validation.DNS1123LabelMaxLength {
			problems = append(problems, field.Invalid(at, host, "must be no more than 63 characters between two dots"))
		}
	}
	return problems
}

func validateTargets(spec *routev1.RouteSpec, at *field.Path) field.ErrorList {
	problems := validateTarget(&spec.To, at.Child("to"))
	if len(spec.AlternateBackends) > maxAlternates {
		problems = append(problems, field.TooMany(at.Child("alternateBackends"), len(spec.AlternateBackends), maxAlternates))
	}
	for i := range spec.AlternateBackends {
		problems = append(problems, validateTarget(&spec.AlternateBackends[i], at.Child("alternateBackends").Index(i))...)
	}
	return problems
}

func validateTarget(target *routev1.RouteTargetReference, at *field.Path) (problems field.ErrorList) {
	if target.Name == "" {
		problems = append(problems, field.Required(at.Child("name"), "name the service"))
	}
	if target.Kind != "Service" {
		problems = append(problems, field.NotSupported(at.Child("kind"), target.Kind, []string{"Service"}))
	}
	if target.Weight != nil && (*target.Weight < 0 || *target.Weight > maxWeight) {
		problems = append(problems, field.Invalid(at.Child("weight"), *target.Weight, "weight must be an integer between 0 and 256"))
	}
	return problems
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

// insecure are the policies for plain HTTP beside none, by where TLS ends.
var insecure = map[routev1.TLSTerminationType][]routev1.InsecureEdgeTerminationPolicyType{
	routev1.TLSTerminationEdge:        {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyAllow, routev1.InsecureEdgeTerminationPolicyRedirect},
	routev1.TLSTerminationReencrypt:   {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyAllow, routev1.InsecureEdgeTerminationPolicyRedirect},
	routev1.TLSTerminationPassthrough: {routev1.InsecureEdgeTerminationPolicyNone, routev1.InsecureEdgeTerminationPolicyRedirect},
}

func validateTLS(spec *routev1.RouteSpec, at *field.Path) (problems field.ErrorList) {
	tls, in := spec.TLS, at.Child("tls")
	if tls == nil {
		return nil
	}
	refuse := func(name, value, reason string) {
		if value != "" {
			problems = append(problems, field.Invalid(in.Child(name), "redacted", reason))
		}
	}
	switch tls.Termination {
	case routev1.TLSTerminationReencrypt:
	case routev1.TLSTerminationEdge:
		refuse("destinationCACertificate", tls.DestinationCACertificate, "edge termination does not support destination certificates")
	case routev1.TLSTerminationPassthrough:
		if spec.Path != "" {
			problems = append(problems, field.Invalid(at.Child("path"), spec.Path, "passthrough termination does not support paths"))
		}
		const reason = "passthrough termination does not support certificates"
		refuse("certificate", tls.Certificate, reason)
		refuse("key", tls.Key, reason)
		refuse("caCertificate", tls.CACertificate, reason)
		refuse("destinationCACertificate", tls.DestinationCACertificate, reason)
	default:
		return append(problems, field.NotSupported(in.Child("termination"), tls.Termination, []routev1.TLSTerminationType{
			routev1.TLSTerminationEdge, routev1.TLSTerminationPassthrough, routev1.TLSTerminationReencrypt}))
	}
	if policy := tls.InsecureEdgeTerminationPolicy; policy != "" && !slices.Contains(insecure[tls.Termination], policy) {
		problems = append(problems, field.NotSupported(in.Child("insecureEdgeTerminationPolicy"), policy, insecure[tls.Termination]))
	}
	return problems
}

// validateStatus judges what routers report.
func validateStatus(_ context.Context, route, _ *routev1.Route) (problems field.ErrorList) {
	for i, ingress := range route.Status.Ingress {
		at := field.NewPath("status", "ingress").Index(i)
		problems = append(problems, validateWildcard(ingress.Host, ingress.WildcardPolicy, at.Child("wildcardPolicy"))...)
	}
	return problems
}
