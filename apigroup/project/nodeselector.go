package project

import (
	"context"
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// NodeSelectorPluginName is the admission plugin that adds a project's node selector to its pods. OpenShift's documents
// call it NodeEnv.
const NodeSelectorPluginName = "OriginPodNodeEnvironment"

// nodeSelector is the plugin.
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

// SetExternalKubeInformerFactory gives the API server's caches.
func (n *nodeSelector) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	n.namespaces = factory.Core().V1().Namespaces().Lister()
	n.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization says whether the caches were given.
func (n *nodeSelector) ValidateInitialization() error {
	if n.namespaces == nil {
		return fmt.Errorf("%s was given no namespaces", NodeSelectorPluginName)
	}
	return nil
}

// Admit adds what the project asks for to what the pod asks for. Both must hold, so a conflict is refused.
func (n *nodeSelector) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, wanted, err := n.wanted(a)
	if err != nil || len(wanted) == 0 {
		return err
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	for key, value := range wanted {
		pod.Spec.NodeSelector[key] = value
	}
	return nil
}

// Validate finds a pod from which someone took the project's selector again.
func (n *nodeSelector) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, wanted, err := n.wanted(a)
	for key, value := range wanted {
		if pod.Spec.NodeSelector[key] != value {
			return admission.NewForbidden(a, fmt.Errorf("the pod's node selector lacks %s=%s of its project", key, value))
		}
	}
	return err
}

// wanted is the pod of a request and the selector of its project: that of the annotation, even if it is empty, or else the
// cluster's. A pod with another value for one of the keys is refused.
func (n *nodeSelector) wanted(a admission.Attributes) (*corev1.Pod, map[string]string, error) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" {
		return nil, nil, nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil, nil, nil
	}
	if _, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirrored {
		return nil, nil, nil
	}
	if !n.WaitForReady() {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("namespaces are not known yet"))
	}
	namespace, err := n.namespaces.Get(a.GetNamespace())
	if err != nil {
		return nil, nil, admission.NewForbidden(a, fmt.Errorf("find project: %w", err))
	}
	wanted := n.settings.now().nodeSelector
	if text, ok := namespace.Annotations[projectv1.ProjectNodeSelector]; ok {
		if wanted, err = parseSelector(text); err != nil {
			return nil, nil, admission.NewForbidden(a, fmt.Errorf("read annotation %s of project %q: %w", projectv1.ProjectNodeSelector, namespace.Name, err))
		}
	}
	for key, value := range wanted {
		if own, ok := pod.Spec.NodeSelector[key]; ok && own != value {
			return nil, nil, admission.NewForbidden(a, fmt.Errorf("pod node label selector conflicts with its project node label selector: %s is %q and %q", key, own, value))
		}
	}
	return pod, wanted, nil
}
