// Package schedulinglimit limits how much work a user's pods cause for the scheduler.
//
// The scheduler places one pod at a time. Whenever a pod in any project changes, the scheduler
// evaluates the affinity of all pods that it could not place, and then tries to place some of them
// again. A few hundred pods with thousands of terms would delay the pods of all projects by
// minutes.
package schedulinglimit

import (
	"context"
	"fmt"
	"io"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/projectowner"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/SchedulingLimit"

const (
	// maxPod is the maximum cost of a pod: the number of terms, requirements and values in its
	// affinity, topology spread constraints, tolerations and node selector.
	maxPod = 1000
	// maxWaiting is the maximum total cost of a user's pods that are not on a node yet. The
	// scheduler requires about 3 µs to evaluate each unit of cost, so all of these pods delay it by
	// at most 30 ms.
	maxWaiting = 10_000
)

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newPlugin(), nil },
	}}}
}

type plugin struct {
	*admission.Handler
	pods       corelisters.PodLister
	indexErr   error
	namespaces cache.Indexer // indexed by package projectowner
}

var (
	_ admission.ValidationInterface                = &plugin{}
	_ initializer.WantsExternalKubeInformerFactory = &plugin{}
)

func newPlugin() *plugin {
	return &plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetExternalKubeInformerFactory stores the caches.
func (p *plugin) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	pods, namespaces := factory.Core().V1().Pods(), factory.Core().V1().Namespaces().Informer()
	if p.indexErr = projectowner.Index(namespaces); p.indexErr != nil {
		return
	}
	p.pods, p.namespaces = pods.Lister(), namespaces.GetIndexer()
	p.SetReadyFunc(func() bool { return pods.Informer().HasSynced() && namespaces.HasSynced() })
}

// ValidateInitialization returns an error if there are no caches.
func (p *plugin) ValidateInitialization() error {
	if p.indexErr != nil {
		return fmt.Errorf("initialize admission plugin %s: %w", Name, p.indexErr)
	}
	if p.pods == nil {
		return fmt.Errorf("initialize admission plugin %s: no informers", Name)
	}
	return nil
}

// Validate rejects a pod if its placement is too expensive, either on its own or together with the
// other waiting pods of the same user. It also checks updates, because an update can add node
// affinity to a pod with scheduling gates.
func (p *plugin) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil
	}
	cost := costOf(&pod.Spec)
	if old, ok := a.GetOldObject().(*corev1.Pod); cost == 0 || ok && cost <= costOf(&old.Spec) {
		return nil
	}
	if cost > maxPod {
		return admission.NewForbidden(a, fmt.Errorf("the affinity, topology spread constraints, tolerations and node selector of the pod have %d terms, requirements and values, but the limit is %d; use labels that combine several conditions", cost, maxPod))
	}
	if !p.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the pod caches are not ready; try again"))
	}
	waiting, err := p.waiting(a.GetNamespace(), a.GetName())
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if waiting+cost > maxWaiting {
		return admission.NewForbidden(a, fmt.Errorf("the affinity of the pod has %d terms, requirements and values, and the waiting pods of its owner's projects have %d others, "+
			"which together exceed the limit of %d; wait until these pods are scheduled, or delete them", cost, waiting, maxWaiting))
	}
	return nil
}

// waiting returns the total cost of the pods that are not on a node, in all projects of a project's
// owner. It excludes the pod with the given name.
func (p *plugin) waiting(project, name string) (cost int, err error) {
	for _, owned := range projectowner.Projects(p.namespaces, project) {
		pods, err := p.pods.Pods(owned).List(labels.Everything())
		if err != nil {
			return 0, fmt.Errorf("list pods: %w", err)
		}
		for _, pod := range pods {
			if pod.Spec.NodeName == "" && !isFinished(pod) && !(owned == project && pod.Name == name) {
				cost += costOf(&pod.Spec)
			}
		}
	}
	return cost, nil
}

func isFinished(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
