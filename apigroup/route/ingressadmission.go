package route

import (
	"context"
	"errors"
	"fmt"
	"io"

	routev1 "github.com/openshift/api/route/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apiserver"
)

// IngressAdmission is the plugin that holds the rules of hosts for Ingress objects, of which routes are made: whoever names a host needs the right to
// choose hosts of routes, hosts are not changed afterwards (allowHostnameChanges of its configuration lets them), and who names a secret must be allowed
// to read it, because its content goes into a route.
//
// Source: OpenShift 3.11 Cluster Administration, 8.2.
const IngressAdmission = "openshift.io/IngressAdmission"

type ingressAdmission struct {
	*admission.Handler
	changes    bool
	authorizer authorizer.Authorizer
}

var _ admission.ValidationInterface = &ingressAdmission{}

func newIngressAdmission(reader io.Reader) (admission.Interface, error) {
	config := struct {
		metav1.TypeMeta `json:",inline"`
		Changes         bool `json:"allowHostnameChanges"`
	}{}
	if err := apiserver.DecodeConfig(reader, "IngressAdmissionConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", IngressAdmission, err)
	}
	return &ingressAdmission{Handler: admission.NewHandler(admission.Create, admission.Update), changes: config.Changes}, nil
}

// SetAuthorizer gives the API server's authorizer.
func (p *ingressAdmission) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization says whether the authorizer was given.
func (p *ingressAdmission) ValidateInitialization() error {
	if p.authorizer == nil {
		return fmt.Errorf("%s was given no authorizer", IngressAdmission)
	}
	return nil
}

// Validate refuses hosts and secrets that the writer may not choose. Those that were there before stay.
func (p *ingressAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := a.GetObject().(*networkingv1.Ingress)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	old, _ := a.GetOldObject().(*networkingv1.Ingress)
	before := chosen(old)
	hostVerb, reason := "create", "you do not have permission to set host fields in Ingress rules"
	if a.GetOperation() == admission.Update {
		hostVerb, reason = "update", "hosts of an Ingress cannot be changed"
	}
	var problems []error
	for i, rule := range ingress.Spec.Rules {
		if rule.Host == "" || before.hosts[rule.Host] || a.GetOperation() == admission.Update && p.changes {
			continue
		}
		if !p.may(ctx, a, authorizer.AttributesRecord{Verb: hostVerb, APIGroup: routev1.GroupName, APIVersion: "v1", Resource: "routes", Subresource: "custom-host"}) {
			problems = append(problems, field.Forbidden(field.NewPath("spec", "rules").Index(i).Child("host"), reason))
		}
	}
	for i, entry := range ingress.Spec.TLS {
		if entry.SecretName == "" || before.secrets[entry.SecretName] {
			continue
		}
		if !p.may(ctx, a, authorizer.AttributesRecord{Verb: "get", APIVersion: "v1", Resource: "secrets", Name: entry.SecretName}) {
			problems = append(problems, field.Forbidden(field.NewPath("spec", "tls").Index(i).Child("secretName"), "you do not have permission to read the secret"))
		}
	}
	if len(problems) > 0 {
		return admission.NewForbidden(a, errors.Join(problems...))
	}
	return nil
}

func (p *ingressAdmission) may(ctx context.Context, a admission.Attributes, what authorizer.AttributesRecord) bool {
	what.User, what.Namespace, what.ResourceRequest = a.GetUserInfo(), a.GetNamespace(), true
	decision, _, err := p.authorizer.Authorize(ctx, what)
	return err == nil && decision == authorizer.DecisionAllow
}

type choices struct{ hosts, secrets map[string]bool }

// chosen are the hosts and secrets of an Ingress, which may be nil.
func chosen(ingress *networkingv1.Ingress) choices {
	found := choices{map[string]bool{}, map[string]bool{}}
	if ingress == nil {
		return found
	}
	for _, rule := range ingress.Spec.Rules {
		found.hosts[rule.Host] = true
	}
	for _, entry := range ingress.Spec.TLS {
		found.secrets[entry.SecretName] = true
	}
	return found
}
