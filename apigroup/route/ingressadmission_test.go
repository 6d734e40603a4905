package route

import (
	"context"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func anIngress(hosts, secrets string) *networkingv1.Ingress {
	ingress := &networkingv1.Ingress{}
	for _, host := range strings.Fields(hosts) {
		ingress.Spec.Rules = append(ingress.Spec.Rules, networkingv1.IngressRule{Host: host})
	}
	for _, secret := range strings.Fields(secrets) {
		ingress.Spec.TLS = append(ingress.Spec.TLS, networkingv1.IngressTLS{SecretName: secret})
	}
	return ingress
}

func TestIngressAdmissionChecksHostsAndSecrets(t *testing.T) {
	const lets = "apiVersion: v1\nkind: IngressAdmissionConfig\nallowHostnameChanges: true"
	for name, c := range map[string]struct {
		config       string
		may          string // verbs on routes/custom-host, and names of readable secrets
		old, desired *networkingv1.Ingress
		want         string
	}{
		"a new host":                    {may: "create", desired: anIngress("a.com", "")},
		"a new host without permission": {desired: anIngress("a.com", ""), want: "spec.rules[0].host"},
		"no host":                       {desired: &networkingv1.Ingress{Spec: networkingv1.IngressSpec{Rules: make([]networkingv1.IngressRule, 1)}}},
		"another host":                  {may: "create", old: anIngress("a.com", ""), desired: anIngress("b.com", ""), want: "cannot be changed"},
		"one more host":                 {may: "create", old: anIngress("a.com", ""), desired: anIngress("a.com b.com", ""), want: "spec.rules[1].host"},
		"one host fewer":                {old: anIngress("a.com b.com", ""), desired: anIngress("b.com", "")},
		"another host with permission":  {may: "update", old: anIngress("a.com", ""), desired: anIngress("b.com", "")},
		"another host, changes allowed": {config: lets, old: anIngress("a.com", ""), desired: anIngress("b.com", "")},
		"a new host, changes allowed":   {config: lets, desired: anIngress("a.com", ""), want: "spec.rules[0].host"},
		"a readable secret":             {may: "mine", desired: anIngress("", "mine")},
		"an unreadable secret":          {may: "mine", desired: anIngress("", "mine theirs"), want: "spec.tls[1].secretName"},
		"an unchanged secret":           {old: anIngress("", "theirs"), desired: anIngress("", "theirs")},
	} {
		t.Run(name, func(t *testing.T) {
			created, err := newIngressAdmission(strings.NewReader(c.config))
			if err != nil {
				t.Fatal(err)
			}
			plugin := created.(*ingressAdmission)
			plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				permission := a.GetVerb()
				if a.GetResource() == "secrets" {
					permission = a.GetName()
				} else if a.GetSubresource() != "custom-host" || a.GetNamespace() != "shop" || a.GetUser().GetName() != "ann" {
					t.Errorf("checked permission is %v", a)
				}
				if permission == c.may {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			}))
			verb, old := admission.Create, runtime.Object(nil)
			if c.old != nil {
				verb, old = admission.Update, c.old
			}
			err = plugin.Validate(t.Context(), admission.NewAttributesRecord(c.desired, old, networkingv1.SchemeGroupVersion.WithKind("Ingress"), "shop", "x",
				networkingv1.SchemeGroupVersion.WithResource("ingresses"), "", verb, nil, false, &user.DefaultInfo{Name: "ann"}), nil)
			if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v, want %q", err, c.want)
			}
		})
	}
}
