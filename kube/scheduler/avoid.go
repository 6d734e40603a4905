package scheduler

import (
	"context"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kube-scheduler/framework"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

// preferAvoidPods implements NodePreferAvoidPodsPriority: a node's
// scheduler.alpha.kubernetes.io/preferAvoidPods annotation lists ReplicationControllers and
// ReplicaSets whose pods prefer other nodes. It does not affect pods with other owners.
type preferAvoidPods struct{ name string }

func newPreferAvoidPods(name string) frameworkruntime.PluginFactory {
	return func(context.Context, runtime.Object, framework.Handle) (framework.Plugin, error) {
		return &preferAvoidPods{name}, nil
	}
}

func (p *preferAvoidPods) Name() string { return p.name }

// Score returns 0 if the node should avoid the pod, and the maximum score otherwise. A malformed
// annotation has no effect.
func (p *preferAvoidPods) Score(_ context.Context, _ framework.CycleState, pod *corev1.Pod, node framework.NodeInfo) (int64, *framework.Status) {
	owner := metav1.GetControllerOfNoCopy(pod)
	text := node.Node().Annotations[corev1.PreferAvoidPodsAnnotationKey]
	if text == "" || owner == nil || owner.Kind != "ReplicationController" && owner.Kind != "ReplicaSet" {
		return framework.MaxScore, nil
	}
	var avoid corev1.AvoidPods
	if err := json.Unmarshal([]byte(text), &avoid); err != nil {
		return framework.MaxScore, nil
	}
	for _, entry := range avoid.PreferAvoidPods {
		if signed := entry.PodSignature.PodController; signed != nil && signed.Kind == owner.Kind && signed.UID == owner.UID {
			return 0, nil
		}
	}
	return framework.MaxScore, nil
}

func (p *preferAvoidPods) ScoreExtensions() framework.ScoreExtensions { return nil }
