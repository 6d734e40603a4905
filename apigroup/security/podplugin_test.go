package security

import (
	"context"
	"slices"
	"strings"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/apiserver/storetest"
	"github.com/slipway-platform/slipway/internal/podpreset"
)

// newEvaluator returns an evaluator for a cluster that has the built-in constraints and the `shop`
// project. A role allows the project's `strong` service account to use `privileged`.
func newEvaluator(t *testing.T) *evaluator {
	t.Helper()
	namespaces := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	if err := namespaces.Add(namespaceWith("shop", map[string]string{
		securityv1.UIDRangeAnnotation: "1000/10", securityv1.SupplementalGroupsAnnotation: "1000/10", securityv1.MCSAnnotation: "s0:c1,c0",
	})); err != nil {
		t.Fatal(err)
	}
	resource := constraintsResource()
	return &evaluator{
		stores: map[schema.GroupResource]*registry.Store{
			resource: storetest.New(resource, &securityv1.SecurityContextConstraintsList{}, scc.BuiltIn("openshift-infra")...),
		},
		namespaces: corelisters.NewNamespaceLister(namespaces),
		authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
			if a.GetVerb() == "use" && a.GetName() == "privileged" && a.GetUser().GetName() == "system:serviceaccount:shop:strong" {
				return authorizer.DecisionAllow, "", nil
			}
			if len(a.GetUser().GetExtra()) > 0 {
				return authorizer.DecisionDeny, "the scopes of the token do not allow it", nil
			}
			return authorizer.DecisionNoOpinion, "", nil
		}),
	}
}

func newPod(change func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "front"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web"}}},
	}
	if change != nil {
		change(pod)
	}
	return pod
}

func privileged(pod *corev1.Pod) {
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
}

func preset(pod *corev1.Pod) {
	pod.Annotations = map[string]string{podpreset.Annotation("db"): "7"}
}

// attributesOf returns the attributes of a request whose user has no permissions in the cluster.
func attributesOf(operation admission.Operation, pod, old runtime.Object, groups ...string) admission.Attributes {
	u := &user.DefaultInfo{Name: "alice", Groups: append(groups, user.AllAuthenticated)}
	if slices.Contains(groups, user.NodesGroup) {
		u.Name = "system:node:one"
	}
	return admission.NewAttributesRecord(pod, old, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "front",
		corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, u)
}

func TestPodPluginChoosesConstraints(t *testing.T) {
	for name, tt := range map[string]struct {
		pod    *corev1.Pod
		groups []string
		want   string // the constraint, or a part of the error
		denied bool
	}{
		"plain pod":                           {newPod(nil), nil, "restricted", false},
		"privileged pod":                      {newPod(privileged), nil, "privileged containers are not allowed", true},
		"privileged pod of an account":        {newPod(func(p *corev1.Pod) { privileged(p); p.Spec.ServiceAccountName = "strong" }), nil, "privileged", false},
		"privileged pod of a group":           {newPod(privileged), []string{"system:cluster-admins"}, "privileged", false},
		"priority of anyuid":                  {newPod(nil), []string{"system:cluster-admins"}, "anyuid", false},
		"preset in privileged pod of a group": {newPod(func(p *corev1.Pod) { preset(p); privileged(p) }), []string{"system:cluster-admins"}, "privileged containers are not allowed", true},
		"preset in plain pod of a group":      {newPod(preset), []string{"system:cluster-admins"}, "restricted", false},
		"preset in pod of an account":         {newPod(func(p *corev1.Pod) { preset(p); privileged(p); p.Spec.ServiceAccountName = "strong" }), nil, "privileged", false},
	} {
		t.Run(name, func(t *testing.T) {
			err := newPodPlugin(newEvaluator(t)).Admit(t.Context(), attributesOf(admission.Create, tt.pod, nil, tt.groups...), nil)
			if tt.denied {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("error is %v, want %q", err, tt.want)
				}
				return
			}
			if got := tt.pod.Annotations[securityv1.ValidatedSCCAnnotation]; err != nil || got != tt.want {
				t.Fatalf("constraint is %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestConstraintThatListsUserNeedsScope(t *testing.T) {
	evaluator := newEvaluator(t)
	constraints := []*scc.Constraints{
		{ObjectMeta: metav1.ObjectMeta{Name: "by-user"}, Users: []string{"alice"}},
		{ObjectMeta: metav1.ObjectMeta{Name: "by-group"}, Groups: []string{"operators"}},
	}
	alice := &user.DefaultInfo{Name: "alice", Groups: []string{"operators"}}
	if got := evaluator.usable(t.Context(), constraints, "shop", []user.Info{alice}); len(got) != len(constraints) {
		t.Errorf("without scopes, %d of %d constraints can be used", len(got), len(constraints))
	}
	alice.Extra = map[string][]string{"scopes.authorization.openshift.io": {"user:info"}}
	if got := evaluator.usable(t.Context(), constraints, "shop", []user.Info{alice}); len(got) != 0 {
		t.Errorf("a token with the scope user:info can use %q", got[0].Name)
	}
	account := &user.DefaultInfo{Name: "system:serviceaccount:shop:default", Groups: []string{"operators"}}
	if got := evaluator.usable(t.Context(), constraints, "shop", []user.Info{alice, account}); len(got) != 1 || got[0].Name != "by-group" {
		t.Errorf("the pod's service account can use %v, want by-group", got)
	}
}

func TestPodPluginCompletesPodsFromNamespace(t *testing.T) {
	pod := newPod(nil)
	if err := newPodPlugin(newEvaluator(t)).Admit(t.Context(), attributesOf(admission.Create, pod, nil), nil); err != nil {
		t.Fatal(err)
	}
	got := pod.Spec.Containers[0].SecurityContext
	if got == nil || got.RunAsUser == nil || *got.RunAsUser != 1000 || pod.Spec.SecurityContext.SELinuxOptions.Level != "s0:c1,c0" {
		t.Errorf("pod is %+v, container %+v", pod.Spec.SecurityContext, got)
	}
}

func TestPodPluginValidatesChanges(t *testing.T) {
	completed := newPod(nil)
	if err := newPodPlugin(newEvaluator(t)).Admit(t.Context(), attributesOf(admission.Create, completed, nil), nil); err != nil {
		t.Fatal(err)
	}
	changed := func(change func(*corev1.Pod)) *corev1.Pod {
		pod := completed.DeepCopy()
		change(pod)
		return pod
	}
	existing := newPod(privileged)
	for name, tt := range map[string]struct {
		operation admission.Operation
		pod, old  *corev1.Pod
		groups    []string
		denied    bool
	}{
		"completed pod": {admission.Create, completed, nil, nil, false},
		"changed to privileged by another plugin": {admission.Create, changed(privileged), nil, nil, true},
		"changed to privileged later":             {admission.Update, changed(privileged), completed, nil, true},
		"labels of a pod that is not accepted":    {admission.Update, newPod(func(p *corev1.Pod) { privileged(p); p.Labels = map[string]string{"a": "b"} }), existing, nil, false},
		"claims another constraint": {admission.Update, changed(func(p *corev1.Pod) {
			p.Annotations[securityv1.ValidatedSCCAnnotation] = "privileged"
		}), completed, nil, false},
		"pod that is being deleted": {admission.Update, changed(func(p *corev1.Pod) {
			privileged(p)
			p.DeletionTimestamp = &metav1.Time{}
		}), completed, nil, false},
		"mirror pod of a node": {admission.Create, newPod(func(p *corev1.Pod) {
			privileged(p)
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
			p.Spec.NodeName = "one"
		}), nil, []string{user.NodesGroup}, false},
		"mirror annotation of a user": {admission.Create, newPod(func(p *corev1.Pod) {
			privileged(p)
			p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "hash"}
			p.Spec.NodeName = "one"
		}), nil, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			var old runtime.Object
			if tt.old != nil {
				old = tt.old
			}
			err := newPodPlugin(newEvaluator(t)).Validate(t.Context(), attributesOf(tt.operation, tt.pod, old, tt.groups...), nil)
			if (err != nil) != tt.denied {
				t.Errorf("error is %v, want an error: %v", err, tt.denied)
			}
		})
	}
}

func TestExecRequiresRightToCreatePod(t *testing.T) {
	strong := newPod(func(p *corev1.Pod) { privileged(p); p.Name, p.Spec.ServiceAccountName = "strong", "strong" })
	plain := newPod(nil)
	for _, pod := range []*corev1.Pod{strong, plain} {
		if err := newPodPlugin(newEvaluator(t)).Admit(t.Context(), attributesOf(admission.Create, pod, nil), nil); err != nil {
			t.Fatal(err)
		}
	}
	plugin := newExecPlugin(newEvaluator(t))
	if err := plugin.ValidateInitialization(); err == nil {
		t.Error("the plugin starts without a client")
	}
	plugin.SetExternalKubeClientSet(fake.NewClientset(plain, strong))
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		pod, subresource string
		groups           []string
		denied           bool
	}{
		"exec in a plain pod":                       {"front", "exec", nil, false},
		"exec in a privileged pod":                  {"strong", "exec", nil, true},
		"attach to a privileged pod":                {"strong", "attach", nil, true},
		"exec in a privileged pod by administrator": {"strong", "exec", []string{"system:cluster-admins"}, false},
		"port-forward to a privileged pod":          {"strong", "portforward", nil, false},
		"missing pod":                               {"none", "exec", nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			u := &user.DefaultInfo{Name: "alice", Groups: append(tt.groups, user.AllAuthenticated)}
			a := admission.NewAttributesRecord(&corev1.PodExecOptions{}, nil, corev1.SchemeGroupVersion.WithKind("PodExecOptions"), "shop", tt.pod,
				corev1.SchemeGroupVersion.WithResource("pods"), tt.subresource, admission.Connect, nil, false, u)
			if err := plugin.Validate(t.Context(), a, nil); (err != nil) != tt.denied {
				t.Errorf("error is %v, want an error: %v", err, tt.denied)
			}
		})
	}
}
