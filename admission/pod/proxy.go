package pod

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
)

// proxy is the PodProxy plugin. It rejects connections through the API server to a pod that has
// ended (pods/proxy). The status of an ended pod keeps its address, but that address might now
// belong to another pod, even in another project. Network policies do not protect that pod, because
// they do not apply to the API server's connections.
type proxy struct {
	*admission.Handler
	client kubernetes.Interface
}

var _ admission.ValidationInterface = &proxy{}

func newProxy() *proxy { return &proxy{Handler: admission.NewHandler(admission.Connect)} }

// SetExternalKubeClientSet stores the client that reads pods.
func (p *proxy) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// ValidateInitialization returns an error if there is no client.
func (p *proxy) ValidateInitialization() error {
	if p.client == nil {
		return fmt.Errorf("initialize %s: no client", PodProxy)
	}
	return nil
}

// Validate rejects a connection to a pod that has ended.
func (p *proxy) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "proxy" {
		return nil
	}
	// The name in a proxy request can contain a scheme and a port.
	_, name, _, ok := utilnet.SplitSchemeNamePort(a.GetName())
	if !ok {
		return nil // the API server rejects the name
	}
	pod, err := p.client.CoreV1().Pods(a.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil // the API server reports that the pod does not exist
	case err != nil:
		return admission.NewForbidden(a, err)
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return admission.NewForbidden(a, errors.New("the pod has ended, and another pod might use its address now; connect to a running pod"))
	}
	return nil
}
