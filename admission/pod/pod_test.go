package pod

import (
	"context"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// caches returns synced informers of a cluster with the given namespaces.
func caches(t *testing.T, namespaces ...runtime.Object) informers.SharedInformerFactory {
	t.Helper()
	factory := informers.NewSharedInformerFactory(fake.NewClientset(namespaces...), 0)
	factory.Core().V1().Namespaces().Informer()
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	return factory
}

func namespace(annotations map[string]string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", Annotations: annotations}}
}

func creating(object runtime.Object, resource string, info user.Info) admission.Attributes {
	gvr := corev1.SchemeGroupVersion.WithResource(resource)
	return admission.NewAttributesRecord(object, nil, corev1.SchemeGroupVersion.WithKind("Pod"), "shop", "x", gvr, "", admission.Create, &metav1.CreateOptions{}, false, info)
}

func TestRunOnceDuration(t *testing.T) {
	for name, c := range map[string]struct {
		config      string
		annotations map[string]string
		policy      corev1.RestartPolicy
		limit, want *int64
		wantErr     bool
	}{
		"cluster":                      {config: "activeDeadlineSecondsOverride: 3600", policy: corev1.RestartPolicyNever, want: new(int64(3600))},
		"on failure":                   {config: "activeDeadlineSecondsOverride: 3600", policy: corev1.RestartPolicyOnFailure, want: new(int64(3600))},
		"always":                       {config: "activeDeadlineSecondsOverride: 3600", policy: corev1.RestartPolicyAlways},
		"earlier deadline of the pod":  {config: "activeDeadlineSecondsOverride: 3600", policy: corev1.RestartPolicyNever, limit: new(int64(5)), want: new(int64(5))},
		"later deadline of the pod":    {config: "activeDeadlineSecondsOverride: 3600", policy: corev1.RestartPolicyNever, limit: new(int64(5000)), want: new(int64(3600))},
		"project":                      {config: "activeDeadlineSecondsOverride: 3600", annotations: map[string]string{deadlineAnnotation: "1000"}, policy: corev1.RestartPolicyNever, want: new(int64(1000))},
		"invalid limit of the project": {annotations: map[string]string{deadlineAnnotation: "1h"}, policy: corev1.RestartPolicyNever, wantErr: true},
		"nothing":                      {policy: corev1.RestartPolicyNever},
	} {
		t.Run(name, func(t *testing.T) {
			plugin, err := newDuration(strings.NewReader("apiVersion: v1\nkind: RunOnceDurationConfig\n" + c.config))
			if err != nil {
				t.Fatal(err)
			}
			plugin.SetExternalKubeInformerFactory(caches(t, namespace(c.annotations)))
			pod := &corev1.Pod{Spec: corev1.PodSpec{RestartPolicy: c.policy, ActiveDeadlineSeconds: c.limit}}
			err = plugin.Admit(t.Context(), creating(pod, "pods", &user.DefaultInfo{}), nil)
			if (err != nil) != c.wantErr {
				t.Fatalf("error is %v", err)
			}
			got := pod.Spec.ActiveDeadlineSeconds
			if (got == nil) != (c.want == nil) || got != nil && *got != *c.want {
				t.Errorf("deadline is %v, want %v", got, c.want)
			}
		})
	}
}

func TestInvalidConfigurationsFail(t *testing.T) {
	for _, text := range []string{"kind: Other", "kind: RunOnceDurationConfig\nactiveDeadlineSecondsOverride: 0", "kind: RunOnceDurationConfig\nseconds: 1", "["} {
		if _, err := newDuration(strings.NewReader(text)); err == nil {
			t.Errorf("RunOnceDuration accepted %q", text)
		}
	}
	if _, err := newOverride(strings.NewReader("kind: ClusterResourceOverrideConfig\ncpuRequestToLimitPercent: 101\nmemoryRequestToLimitPercent: -1\nlimitCPUToMemoryPercent: -1")); err == nil || strings.Count(err.Error(), "Percent is") != 3 {
		t.Errorf("error is %v, want three problems", err)
	}
	if _, err := newConstraints(strings.NewReader("kind: PodNodeConstraintsConfig\nlabels: [a]")); err == nil {
		t.Error("PodNodeConstraints accepted an unknown field")
	}
}

// binders returns an authorizer that allows the named users to bind pods.
func binders(names ...string) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if slices.Contains(names, a.GetUser().GetName()) && a.GetVerb() == "create" && a.GetResource() == "pods" && a.GetSubresource() == "binding" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})
}

func TestPodNodeConstraintsNeedPermissionToBind(t *testing.T) {
	plugin, err := newConstraints(strings.NewReader("apiversion: v1 # as in the guide\nkind: PodNodeConstraintsConfig\nnodeSelectorLabelBlacklist: [kubernetes.io/hostname, zone]"))
	if err != nil {
		t.Fatal(err)
	}
	plugin.SetAuthorizer(binders("operator", "system:serviceaccount:shop:strong"))
	for _, c := range []struct {
		user    string
		spec    corev1.PodSpec
		wantErr string
	}{
		{"joe", corev1.PodSpec{}, ""},
		{"joe", corev1.PodSpec{NodeSelector: map[string]string{"disk": "ssd"}}, ""},
		{"joe", corev1.PodSpec{NodeName: "n"}, "nodeName"},
		{"joe", corev1.PodSpec{NodeSelector: map[string]string{"zone": "a"}}, "zone"},
		{"operator", corev1.PodSpec{NodeName: "n", NodeSelector: map[string]string{"zone": "a"}}, ""},
		{"joe", corev1.PodSpec{NodeName: "n", ServiceAccountName: "strong"}, ""},
		{"joe", corev1.PodSpec{NodeName: "n", ServiceAccountName: "weak"}, "nodeName"},
	} {
		err := plugin.Validate(t.Context(), creating(&corev1.Pod{Spec: c.spec}, "pods", &user.DefaultInfo{Name: c.user}), nil)
		if (err != nil) != (c.wantErr != "") || err != nil && !strings.Contains(err.Error(), c.wantErr) {
			t.Errorf("%s, %+v: %v", c.user, c.spec, err)
		}
	}
	template := &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{NodeName: "n"}}}}
	if err := plugin.Validate(t.Context(), creating(template, "replicationcontrollers", &user.DefaultInfo{Name: "joe"}), nil); err == nil {
		t.Error("a template with a node name is accepted")
	}
}

func TestClusterResourceOverrideSetsRequests(t *testing.T) {
	plugin, err := newOverride(strings.NewReader("kind: ClusterResourceOverrideConfig\nmemoryRequestToLimitPercent: 25\ncpuRequestToLimitPercent: 50\nlimitCPUToMemoryPercent: 200"))
	if err != nil {
		t.Fatal(err)
	}
	limits := func() corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
	}
	for off, annotations := range map[bool]map[string]string{false: nil, true: {overrideAnnotation: "false"}} {
		plugin.SetExternalKubeInformerFactory(caches(t, namespace(annotations)))
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Limits: limits()}}, {}}}}
		if err := plugin.Admit(t.Context(), creating(pod, "pods", &user.DefaultInfo{}), nil); err != nil {
			t.Fatal(err)
		}
		got := pod.Spec.Containers[0].Resources
		if off {
			if got.Requests != nil || len(got.Limits) != 1 {
				t.Errorf("resources in a project with the override disabled: %v", got)
			}
			continue
		}
		if got.Requests.Memory().String() != "256Mi" || got.Limits.Cpu().String() != "2" || got.Requests.Cpu().String() != "1" {
			t.Errorf("resources are %v", got)
		}
		if second := pod.Spec.Containers[1].Resources; second.Requests != nil {
			t.Errorf("a container without limits got requests: %v", second)
		}
	}
}
