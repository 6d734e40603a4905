package pod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// giveQuota passes an informer factory to a plugin. If quota is not nil, the informers contain the
// quota.
func giveQuota(t *testing.T, plugin *reserved, quota *corev1.ResourceQuota) {
	t.Helper()
	client := fake.NewClientset()
	if quota != nil {
		client = fake.NewClientset(quota)
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	plugin.SetExternalKubeInformerFactory(factory)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
}

func TestSystemPriorityRejectsPodsOfTenants(t *testing.T) {
	selector := func(operator corev1.ScopeSelectorOperator, classes ...string) corev1.ResourceQuotaSpec {
		return corev1.ResourceQuotaSpec{ScopeSelector: &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{
			{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: classes},
		}}}
	}
	const node, cluster = "system-node-critical", "system-cluster-critical"
	for name, c := range map[string]struct {
		namespace, class string
		quota            *corev1.ResourceQuotaSpec
		ok               bool
	}{
		"no class":                   {"shop", "", nil, true},
		"class of the administrator": {"shop", "high", nil, true},
		"node":                       {"shop", node, nil, false},
		"cluster":                    {"shop", cluster, nil, false},
		"an unknown system class":    {"shop", "system-other", nil, false},
		"kube-system":                {"kube-system", node, nil, true},
		"default":                    {"default", cluster, nil, true},
		"openshift":                  {"openshift", cluster, nil, true},
		"openshift-monitoring":       {"openshift-monitoring", cluster, nil, true},
		"name that begins like a platform namespace": {"kubeshop", node, nil, false},
		"quota with another scope":                   {"shop", node, &corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}}, false},
		"quota for another class":                    {"shop", node, new(selector(corev1.ScopeSelectorOpIn, cluster)), false},
		"quota for all but the class":                {"shop", node, new(selector(corev1.ScopeSelectorOpNotIn, cluster)), false},
		"quota for the class":                        {"shop", node, new(selector(corev1.ScopeSelectorOpIn, cluster, node)), true},
		"quota for each class":                       {"shop", node, new(selector(corev1.ScopeSelectorOpExists)), true},
		"quota for each class by scope":              {"shop", node, &corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopePriorityClass}}, true},
	} {
		var quota *corev1.ResourceQuota
		if c.quota != nil {
			quota = &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "q"}, Spec: *c.quota}
		}
		plugin := newPriority()
		giveQuota(t, plugin, quota)
		for _, annotations := range []map[string]string{nil, {corev1.MirrorPodAnnotationKey: "forged"}} {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, Spec: corev1.PodSpec{PriorityClassName: c.class}}
			request := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), c.namespace, "x", corev1.SchemeGroupVersion.WithResource("pods"), "",
				admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "joe"})
			if err := plugin.Validate(t.Context(), request, nil); (err == nil) != c.ok {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
