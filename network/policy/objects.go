package policy

import (
	"fmt"
	"net/netip"
	"slices"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/network/cni"
)

// objects are caches of the objects that policies depend on.
type objects struct {
	pods, namespaces, policies cache.SharedIndexInformer
}

func newObjects(factory informers.SharedInformerFactory) *objects {
	return &objects{
		pods:       factory.Core().V1().Pods().Informer(),
		namespaces: factory.Core().V1().Namespaces().Informer(),
		policies:   factory.Networking().V1().NetworkPolicies().Informer(),
	}
}

// watch returns a channel with a value after changes.
func (o *objects) watch() (<-chan struct{}, error) {
	changes := make(chan struct{}, 1)
	notify := func() {
		select {
		case changes <- struct{}{}:
		default: // a value is already pending
		}
	}
	for _, informer := range []cache.SharedIndexInformer{o.pods, o.namespaces, o.policies} {
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(any) { notify() },
			UpdateFunc: func(old, new any) {
				if relevant(old, new) {
					notify()
				}
			},
			DeleteFunc: func(any) { notify() },
		})
		if err != nil {
			return nil, fmt.Errorf("watch objects: %w", err)
		}
	}
	return changes, nil
}

// relevant reports whether a change of an object can change the rules. Most changes of pods cannot:
// they change conditions.
func relevant(old, new any) bool {
	before, isPod := old.(*corev1.Pod)
	if !isPod {
		return true
	}
	before = before.DeepCopy()
	before.ResourceVersion = new.(*corev1.Pod).ResourceVersion
	return !equality.Semantic.DeepEqual(before, new)
}

// trim removes what policies do not depend on, so that the caches stay small.
func trim(object any) (any, error) {
	switch object := object.(type) {
	case *corev1.Pod:
		return trimPod(object), nil
	case *corev1.Namespace:
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: object.Name, UID: object.UID, ResourceVersion: object.ResourceVersion, Labels: object.Labels,
			Annotations: map[string]string{projectv1.ProjectRequesterAnnotation: object.Annotations[projectv1.ProjectRequesterAnnotation]},
		}}, nil
	case *networkingv1.NetworkPolicy:
		object.ManagedFields, object.Annotations = nil, nil
	}
	return object, nil
}

func trimPod(p *corev1.Pod) *corev1.Pod {
	small := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels},
		Spec:       corev1.PodSpec{NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP},
	}
	if hash, static := p.Annotations[corev1.MirrorPodAnnotationKey]; static {
		small.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: hash}
	}
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		if len(container.Ports) > 0 {
			small.Spec.Containers = append(small.Spec.Containers, corev1.Container{Ports: container.Ports})
		}
	}
	return small
}

// find returns the object of a pod of this node, or nil if the cache does not have it. A static pod
// has another UID in the API: that of its mirror pod, which names the UID of the static pod.
func (o *objects) find(local cni.Pod) *corev1.Pod {
	existing, exists, err := o.pods.GetStore().GetByKey(local.Namespace + "/" + local.Name)
	if err != nil || !exists {
		return nil
	}
	p := existing.(*corev1.Pod)
	if string(p.UID) != local.UID && p.Annotations[corev1.MirrorPodAnnotationKey] != local.UID {
		return nil
	}
	return p
}

// snapshot returns the state of the cluster, with the pods of this node that have an address.
func (o *objects) snapshot(node string, local []cni.Pod) snapshot {
	s := snapshot{namespaces: map[string]labels.Set{}, requesters: map[string]string{}}
	for _, object := range o.namespaces.GetStore().List() {
		namespace := object.(*corev1.Namespace)
		s.namespaces[namespace.Name] = namespace.Labels
		s.requesters[namespace.Name] = namespace.Annotations[projectv1.ProjectRequesterAnnotation]
	}
	for _, object := range o.policies.GetStore().List() {
		s.policies = append(s.policies, object.(*networkingv1.NetworkPolicy))
	}
	unnamed := map[string]bool{} // addresses of pods without a name
	for _, l := range local {
		if l.Name == "" {
			unnamed[l.Address.String()] = true
			continue
		}
		entry := pod{namespace: l.Namespace, address: l.Address, local: true, unknown: true}
		if p := o.find(l); p != nil {
			entry = describePod(p, l.Address, true)
		}
		s.pods = append(s.pods, entry)
	}
	for _, object := range o.pods.GetStore().List() {
		p := object.(*corev1.Pod)
		if p.Spec.HostNetwork || p.Spec.NodeName == node && !unnamed[p.Status.PodIP] {
			continue
		}
		address, err := netip.ParseAddr(p.Status.PodIP)
		if err == nil && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed {
			s.pods = append(s.pods, describePod(p, address, p.Spec.NodeName == node))
		}
	}
	return s
}

func describePod(p *corev1.Pod, address netip.Addr, local bool) pod {
	return pod{namespace: p.Namespace, labels: p.Labels, ports: namedPorts(p.Spec.Containers), address: address, local: local}
}
