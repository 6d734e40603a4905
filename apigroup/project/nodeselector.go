package project

import (
	"context"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/internal/mirrorpod"
)

// NodeSelectorPluginName is the name of the admission plugin that adds a project's node selector to
// its pods. OpenShift's documentation calls it NodeEnv.
const NodeSelectorPluginName = "OriginPodNodeEnvironment"

// nodeSelector is the OriginPodNodeEnvironment admission plugin.
type nodeSelector struct {
	*admission.Handler
	settings   *Settings
	namespaces corelisters.NamespaceLister
}

var (
	_ admission.MutationInterface   = &nodeSelector{}
	_ admission.ValidationInterface = &nodeSelector{}
)

func newNodeSelector(settings *Settings) *nodeSelector {
	return &nodeSelector{Handler: admission.NewHandler(admission.Create), settings: settings}
}

// SetExternalKubeInformerFactory stores the namespace lister.
func (n *nodeSelector) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	n.namespaces = factory.Core().V1().Namespaces().Lister()
	n.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization returns an error if the lister is not set.
func (n *nodeSelector) ValidateInitialization() error {
	if n.namespaces == nil {
		return fmt.Errorf("initialize %s: no namespace lister", NodeSelectorPluginName)
	}
	return nil
}

// Admit adds the project's node selector to the pod's node selector. It rejects a pod if these
// selectors conflict, because a node must match both.
func (n *nodeSelector) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, selector, err := n.selectorOf(a)
	if err != nil || len(selector) == 0 {
		return err
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	for key, value := range selector {
		pod.Spec.NodeSelector[key] = value
	}
	return nil
}

// Validate rejects a pod if its node selector no longer contains the project's node selector
// because another plugin has changed it.
func (n *nodeSelector) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, selector, err := n.selectorOf(a)
	for key, value := range selector {
		if pod.Spec.NodeSelector[key] != value {
			return admission.NewForbidden(a, fmt.Errorf("the pod's node selector lacks %s=%s, which its project requires", key, value))
		}
	}
	return err
}

// selectorOf returns a request's pod and the project's node selector. This is the selector in the
// project's annotation, even if it is empty, or otherwise the cluster's selector. It rejects a pod
// whose selector contains a different value for any key of the project's selector.
func (n *nodeSelector) selectorOf(a admission.Attributes) (*corev1.Pod, map[string]string, error) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil, nil, nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || mirrorpod.Is(pod, a.GetUserInfo()) {
		return nil, nil, nil
	}
	if !n.WaitForReady() {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("the namespace cache is not ready; try again"))
	}
	namespace, err := n.namespaces.Get(a.GetNamespace())
	if err != nil {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("find project: %w", err))
	}
	selector := n.settings.now().nodeSelector
	if text, ok := namespace.Annotations[projectv1.ProjectNodeSelector]; ok {
		if selector, err = parseSelector(text); err != nil {
			return nil, nil, admission.NewForbidden(a, fmt.Errorf("parse annotation %s of project %q: %w",
				projectv1.ProjectNodeSelector, namespace.Name, err))
		}
	}
	for key, value := range selector {
		if current, ok := pod.Spec.NodeSelector[key]; ok && current != value {
			return nil, nil, admission.NewForbidden(a, fmt.Errorf("pod node label selector conflicts with its project node label selector: "+
				"%s is %q and %q", key, current, value))
		}
	}
	return pod, selector, nil
}
