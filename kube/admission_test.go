package kube

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	core "k8s.io/kubernetes/pkg/apis/core"

	"github.com/slipway-platform/slipway/apiserver"
)

// labeler is a plugin that uses wire types and changes pods.
type labeler struct {
	*admission.Handler
	saw []any
}

func (l *labeler) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := a.GetObject().(*corev1.Pod)
	l.saw = append(l.saw, a.GetOldObject())
	pod.Labels = map[string]string{"seen": "yes"}
	pod.Spec.HostNetwork = true
	return nil
}

// authorized is a plugin that stores the authorizers that it receives.
type authorized struct {
	*admission.Handler
	full          authorizer.Authorizer
	unconditional authorizer.UnconditionalAuthorizer
}

func (*authorized) ValidateInitialization() error { return nil }

func (p *authorized) SetAuthorizer(a authorizer.Authorizer) { p.full = a }

func (p *authorized) SetUnconditionalAuthorizer(a authorizer.UnconditionalAuthorizer) {
	p.unconditional = a
}

func TestPluginsGetCompleteAuthorizer(t *testing.T) {
	complete := &apiserver.Authorizer{}
	plugin := &authorized{full: authorizerfactory.NewAlwaysAllowAuthorizer()}
	withAuthorizer(complete).Decorate(plugin, "")
	if plugin.full != complete || plugin.unconditional != complete {
		t.Errorf("the authorizers of the plugin are %T and %T", plugin.full, plugin.unconditional)
	}
}

func TestPluginsChangeWireTypes(t *testing.T) {
	inner := &labeler{Handler: admission.NewHandler(admission.Create)}
	plugin := onWireTypes([]string{"Labeler"}).Decorate(inner, "Labeler")
	pod := &core.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: core.PodSpec{HostPID: true}}
	attributes := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "p",
		corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{})
	if err := plugin.(admission.MutationInterface).Admit(t.Context(), attributes, nil); err != nil {
		t.Fatal(err)
	}
	if pod.Labels["seen"] != "yes" || !pod.Spec.HostNetwork || !pod.Spec.HostPID || pod.Name != "p" {
		t.Errorf("pod is %+v", pod)
	}
	if inner.saw[0] != nil {
		t.Errorf("a create request has an old object: %v", inner.saw[0])
	}
	if err := plugin.(admission.ValidationInterface).Validate(t.Context(), attributes, nil); err != nil {
		t.Errorf("a plugin without validation: %v", err)
	}
	if other := onWireTypes([]string{"Labeler"}).Decorate(inner, "Other"); other != admission.Interface(inner) {
		t.Error("a plugin of Kubernetes is wrapped too")
	}
}

// rejecting is a plugin that rejects every request.
type rejecting struct{ *admission.Handler }

func (rejecting) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return errors.New("no such namespace")
}

func TestReviewsNeedNoNamespace(t *testing.T) {
	for name, tt := range map[string]struct {
		plugin, group, resource string
		wantErr                 bool
	}{
		"review":                    {"NamespaceLifecycle", "authorization.openshift.io", "localsubjectaccessreviews", false},
		"rules":                     {"NamespaceLifecycle", "authorization.openshift.io", "selfsubjectrulesreviews", false},
		"role":                      {"NamespaceLifecycle", "authorization.openshift.io", "roles", true},
		"review of another group":   {"NamespaceLifecycle", "example.com", "localsubjectaccessreviews", true},
		"review for another plugin": {"Other", "authorization.openshift.io", "localsubjectaccessreviews", true},
	} {
		plugin := reviewAnywhere().Decorate(rejecting{admission.NewHandler(admission.Create)}, tt.plugin)
		version := schema.GroupVersion{Group: tt.group, Version: "v1"}
		attributes := admission.NewAttributesRecord(nil, nil, version.WithKind("Any"), "missing", "", version.WithResource(tt.resource), "",
			admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{})
		if err := plugin.(admission.MutationInterface).Admit(t.Context(), attributes, nil); (err != nil) != tt.wantErr {
			t.Errorf("%s: %v", name, err)
		}
	}
}
