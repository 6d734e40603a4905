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

// IngressAdmission is the name of the admission plugin that applies the rules for route hosts to
// Ingress objects, because routes are created from them. A user who sets a host requires permission
// to choose route hosts. Hosts are immutable unless the configuration sets allowHostnameChanges. A
// user who specifies a secret must be allowed to read the secret, because its content becomes part
// of a route.
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

// SetAuthorizer stores the API server's authorizer.
func (p *ingressAdmission) SetAuthorizer(a authorizer.Authorizer) { p.authorizer = a }

// ValidateInitialization returns an error if the authorizer is not set.
func (p *ingressAdmission) ValidateInitialization() error {
	if p.authorizer == nil {
		return fmt.Errorf("initialize %s: no authorizer", IngressAdmission)
	}
	return nil
}

// Validate rejects hosts and secrets that the user is not allowed to choose. It accepts values that
// the old object already contains.
func (p *ingressAdmission) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	ingress, ok := a.GetObject().(*networkingv1.Ingress)
	if !ok || a.GetSubresource() != "" {
		return nil
	}
	old, _ := a.GetOldObject().(*networkingv1.Ingress)
	previous := choicesOf(old)
	hostVerb, reason := "create", "you do not have permission to set host fields in Ingress rules"
	if a.GetOperation() == admission.Update {
		hostVerb, reason = "update", "hosts of an Ingress cannot be changed"
	}
	var errs []error
	for i, rule := range ingress.Spec.Rules {
		if rule.Host == "" || previous.hosts[rule.Host] || a.GetOperation() == admission.Update && p.changes {
			continue
		}
		allowed := p.may(ctx, a, authorizer.AttributesRecord{
			Verb: hostVerb, APIGroup: routev1.GroupName, APIVersion: "v1", Resource: "routes", Subresource: "custom-host",
		})
		if !allowed {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "rules").Index(i).Child("host"), reason))
		}
	}
	for i, entry := range ingress.Spec.TLS {
		if entry.SecretName == "" || previous.secrets[entry.SecretName] {
			continue
		}
		if !p.may(ctx, a, authorizer.AttributesRecord{Verb: "get", APIVersion: "v1", Resource: "secrets", Name: entry.SecretName}) {
			errs = append(errs, field.Forbidden(field.NewPath("spec", "tls").Index(i).Child("secretName"),
				"you do not have permission to read the secret"))
		}
	}
	if len(errs) > 0 {
		return admission.NewForbidden(a, errors.Join(errs...))
	}
	return nil
}

func (p *ingressAdmission) may(ctx context.Context, a admission.Attributes, attributes authorizer.AttributesRecord) bool {
	attributes.User, attributes.Namespace, attributes.ResourceRequest = a.GetUserInfo(), a.GetNamespace(), true
	decision, _, err := p.authorizer.Authorize(ctx, attributes)
	return err == nil && decision == authorizer.DecisionAllow
}

type choices struct{ hosts, secrets map[string]bool }

// choicesOf returns an Ingress's hosts and secrets. The Ingress can be nil.
func choicesOf(ingress *networkingv1.Ingress) choices {
	values := choices{map[string]bool{}, map[string]bool{}}
	if ingress == nil {
		return values
	}
	for _, rule := range ingress.Spec.Rules {
		values.hosts[rule.Host] = true
	}
	for _, entry := range ingress.Spec.TLS {
		values.secrets[entry.SecretName] = true
	}
	return values
}
