package pod

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
)

func TestAffinityToPodsOfOtherProjectsNeedsQuota(t *testing.T) {
	all := corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}
	named := func(names ...string) corev1.PodAffinityTerm { return corev1.PodAffinityTerm{Namespaces: names} }
	with := func(term corev1.PodAffinityTerm) []corev1.Affinity {
		required, preferred := []corev1.PodAffinityTerm{term}, []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: term}}
		return []corev1.Affinity{
			{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}},
			{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}},
			{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: required}},
			{PodAntiAffinity: &corev1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: preferred}},
		}
	}
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "q"},
		Spec:       corev1.ResourceQuotaSpec{Scopes: []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeCrossNamespacePodAffinity}},
	}
	for _, tt := range []struct {
		namespace string
		term      corev1.PodAffinityTerm
		quota     *corev1.ResourceQuota
		ok        bool
	}{
		{"shop", corev1.PodAffinityTerm{}, nil, true},
		{"shop", named("shop"), nil, true},
		{"shop", named("shop", "evil"), nil, false},
		{"shop", all, nil, false},
		{"shop", all, quota, true},
		{"openshift-monitoring", all, nil, true},
	} {
		for _, affinity := range with(tt.term) {
			plugin := newAffinity()
			giveQuota(t, plugin, tt.quota)
			pod := &corev1.Pod{Spec: corev1.PodSpec{Affinity: &affinity}}
			request := admission.NewAttributesRecord(pod, nil, corev1.SchemeGroupVersion.WithKind("Pod"), tt.namespace, "x", corev1.SchemeGroupVersion.WithResource("pods"), "",
				admission.Create, &metav1.CreateOptions{}, false, &user.DefaultInfo{Name: "joe"})
			err := plugin.Validate(t.Context(), request, nil)
			if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "quota with the scope CrossNamespacePodAffinity") {
				t.Errorf("%s, %+v: %v", tt.namespace, affinity, err)
			}
		}
	}
}
