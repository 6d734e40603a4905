package scheduler

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/helper"
)

// serviceGroups finds the services that select a pod.
type serviceGroups struct{ lister corelisters.ServiceLister }

func newServiceGroups(handle framework.Handle) *serviceGroups {
	return &serviceGroups{handle.SharedInformerFactory().Core().V1().Services().Lister()}
}

// services returns the selectors of the services that select a pod.
func (g *serviceGroups) services(pod *corev1.Pod) ([]labels.Selector, error) {
	services, err := helper.GetPodServices(g.lister, pod)
	if err != nil {
		return nil, err
	}
	var selectors []labels.Selector
	for _, service := range services {
		selectors = append(selectors, labels.SelectorFromSet(service.Spec.Selector))
	}
	return selectors, nil
}

// controllerGroups finds the controllers that own a pod.
type controllerGroups struct {
	replicationControllers corelisters.ReplicationControllerLister
	replicaSets            appslisters.ReplicaSetLister
	statefulSets           appslisters.StatefulSetLister
}

func newControllerGroups(handle framework.Handle) *controllerGroups {
	core, apps := handle.SharedInformerFactory().Core().V1(), handle.SharedInformerFactory().Apps().V1()
	return &controllerGroups{core.ReplicationControllers().Lister(), apps.ReplicaSets().Lister(), apps.StatefulSets().Lister()}
}

// owner returns the selector of the controller that owns a pod, or nil. It also returns nil if the
// controller is not in the cache yet.
func (g *controllerGroups) owner(pod *corev1.Pod) labels.Selector {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return nil
	}
	var selector *metav1.LabelSelector
	switch owner.Kind {
	case "ReplicationController":
		if controller, err := g.replicationControllers.ReplicationControllers(pod.Namespace).Get(owner.Name); err == nil {
			return labels.SelectorFromSet(controller.Spec.Selector)
		}
	case "ReplicaSet":
		if set, err := g.replicaSets.ReplicaSets(pod.Namespace).Get(owner.Name); err == nil {
			selector = set.Spec.Selector
		}
	case "StatefulSet":
		if set, err := g.statefulSets.StatefulSets(pod.Namespace).Get(owner.Name); err == nil {
			selector = set.Spec.Selector
		}
	}
	if selector == nil {
		return nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return nil
	}
	return parsed
}

func matchesAny(selectors []labels.Selector, pod *corev1.Pod) bool {
	return slices.ContainsFunc(selectors, func(s labels.Selector) bool { return s.Matches(labels.Set(pod.Labels)) })
}

// count returns the number of pods on a node that are in a namespace, match a selector and are not
// being deleted.
func count(node framework.NodeInfo, namespace string, selectors []labels.Selector) (number int64) {
	for _, info := range node.GetPods() {
		pod := info.GetPod()
		if pod.Namespace == namespace && pod.DeletionTimestamp == nil && matchesAny(selectors, pod) {
			number++
		}
	}
	return number
}
