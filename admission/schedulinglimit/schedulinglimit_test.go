package schedulinglimit

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// requirements returns a selector with the given cost.
func requirements(cost int) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: make([]metav1.LabelSelectorRequirement, cost)}
}

// values returns a node selector term with the given cost.
func values(cost int) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Values: make([]string, cost-2)}}}
}

func TestCostOfPod(t *testing.T) {
	term := corev1.PodAffinityTerm{LabelSelector: requirements(4), NamespaceSelector: requirements(2), Namespaces: make([]string, 2), MatchLabelKeys: make([]string, 1)}
	weighted := corev1.WeightedPodAffinityTerm{PodAffinityTerm: term}
	const termCost = 10
	for name, tt := range map[string]struct {
		spec corev1.PodSpec
		want int
	}{
		"nothing":       {corev1.PodSpec{Affinity: &corev1.Affinity{}}, 0},
		"tolerations":   {corev1.PodSpec{Tolerations: make([]corev1.Toleration, freeConditions+3)}, 3},
		"node selector": {corev1.PodSpec{NodeSelector: map[string]string{"a": "b"}}, 0},
		"spread":        {corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: requirements(4)}, {}}}, 6},
		"labels":        {corev1.PodSpec{TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}}}}, 2},
		"affinity": {corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term, term}, PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted},
		}}}, 3 * termCost},
		"anti-affinity": {corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}, PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{weighted},
		}}}, 2 * termCost},
		"node affinity": {corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{values(7), values(3)}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Preference: values(5)}},
		}}}, 15},
	} {
		if got := costOf(&tt.spec); got != tt.want {
			t.Errorf("%s: cost %d, want %d", name, got, tt.want)
		}
	}
}

// pod returns a pod with the given cost.
func pod(namespace, name string, cost int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.PodSpec{Tolerations: make([]corev1.Toleration, freeConditions+cost)}}
}

func TestCostOfWaitingPodsIsLimited(t *testing.T) {
	const each, full = maxPod, maxWaiting / maxPod
	var objects []runtime.Object
	for project, requester := range map[string]string{"evil": "mallory", "worse": "mallory", "shop": "alice", "open": ""} {
		objects = append(objects, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: project, Annotations: map[string]string{"openshift.io/requester": requester}}})
	}
	for i := range full - 1 {
		objects = append(objects, pod("evil", fmt.Sprint("waiting-", i), each))
		placed, finished := pod("shop", fmt.Sprint("placed-", i), each), pod("shop", fmt.Sprint("finished-", i), each)
		placed.Spec.NodeName, finished.Status.Phase = "a", corev1.PodFailed
		objects = append(objects, placed, finished)
	}
	objects = append(objects, pod("worse", "half", each/2))
	factory := informers.NewSharedInformerFactory(fake.NewClientset(objects...), 0)
	p := newPlugin()
	if p.ValidateInitialization() == nil {
		t.Error("a plugin without informers is valid")
	}
	p.SetExternalKubeInformerFactory(factory)
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for name, tt := range map[string]struct {
		pod, old *corev1.Pod
		reason   string
	}{
		"the last part":                {pod("worse", "x", each/2), nil, ""},
		"more than the last part":      {pod("worse", "x", each/2+1), nil, "exceed the limit"},
		"no affinity":                  {pod("worse", "x", 0), nil, ""},
		"another user":                 {pod("shop", "x", each), nil, ""},
		"a project without a user":     {pod("open", "x", each), nil, ""},
		"a project that is new":        {pod("new", "x", each), nil, ""},
		"too much for one pod":         {pod("shop", "x", each+1), nil, "the limit is 1000"},
		"an update of a pod":           {pod("evil", "waiting-0", each), pod("evil", "waiting-0", each), ""},
		"an update that adds affinity": {pod("worse", "half", each), pod("worse", "half", each/2), ""},
		"too much by an update":        {pod("worse", "half", each+1), pod("worse", "half", each/2), "the limit is 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			operation, old := admission.Create, runtime.Object(nil)
			if tt.old != nil {
				operation, old = admission.Update, tt.old
			}
			attributes := admission.NewAttributesRecord(tt.pod, old, corev1.SchemeGroupVersion.WithKind("Pod"), tt.pod.Namespace, tt.pod.Name,
				corev1.SchemeGroupVersion.WithResource("pods"), "", operation, nil, false, nil)
			switch err := p.Validate(t.Context(), attributes, nil); {
			case (err == nil) != (tt.reason == ""):
				t.Errorf("error %v, want reason %q", err, tt.reason)
			case err != nil && !strings.Contains(err.Error(), tt.reason):
				t.Errorf("error %v lacks %q", err, tt.reason)
			}
		})
	}
}
