// Package replicalimit limits the number of replicas of a StatefulSet.
//
// Each time the upstream controller syncs a StatefulSet, it allocates all desired pods in memory,
// including copies of the template, before it creates the first pod. Nothing else limits the number
// of replicas, so a small object could require more memory than the host has.
package replicalimit

import (
	"context"
	"fmt"
	"io"

	kubeappsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
)

// Name is the name of the admission plugin in messages.
const Name = "slipway.io/ReplicaLimit"

const (
	// maxMemory is the maximum amount of memory, in bytes, that one sync can require. Several syncs
	// can run at the same time, because the controller has several workers.
	maxMemory = 64 << 20
	// podMemory is the memory, in bytes, for a pod without the copy of its template.
	podMemory = 4 << 10
	// expansion is the ratio between a template's size in memory and its encoded size. For example,
	// an empty element requires two bytes when encoded, but dozens of bytes in memory.
	expansion = 16
)

// Feature returns the feature that adds the admission plugin to the API server.
func Feature() apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{
		Name: Name, New: func(io.Reader) (admission.Interface, error) { return newPlugin(), nil },
	}}}
}

type plugin struct {
	*admission.Handler
	client kubernetes.Interface
}

var (
	_ admission.ValidationInterface          = &plugin{}
	_ initializer.WantsExternalKubeClientSet = &plugin{}
)

func newPlugin() *plugin {
	return &plugin{Handler: admission.NewHandler(admission.Create, admission.Update)}
}

// SetExternalKubeClientSet stores the client that reads a StatefulSet when its scale changes.
func (p *plugin) SetExternalKubeClientSet(client kubernetes.Interface) { p.client = client }

// ValidateInitialization returns an error if there is no client.
func (p *plugin) ValidateInitialization() error {
	if p.client == nil {
		return fmt.Errorf("initialize admission plugin %s: no client", Name)
	}
	return nil
}

// Validate rejects a StatefulSet whose replicas require too much memory. It accepts updates that do
// not increase the required memory.
func (p *plugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != kubeappsv1.Resource("statefulsets") {
		return nil
	}
	switch object := a.GetObject().(type) {
	case *kubeappsv1.StatefulSet:
		old, _ := a.GetOldObject().(*kubeappsv1.StatefulSet)
		if a.GetSubresource() == "" {
			return check(a, object, old)
		}
	case *autoscalingv1.Scale:
		set, err := p.client.AppsV1().StatefulSets(a.GetNamespace()).Get(ctx, a.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // the request fails anyway
		}
		if err != nil {
			return admission.NewForbidden(a, fmt.Errorf("read StatefulSet: %w", err))
		}
		scaled := set.DeepCopy()
		scaled.Spec.Replicas = &object.Spec.Replicas
		return check(a, scaled, set)
	}
	return nil
}

func check(a admission.Attributes, set, old *kubeappsv1.StatefulSet) error {
	if replicas, most := replicasOf(set), maxMemory/memoryOfPod(set); replicas > most && needs(set) > needs(old) {
		return admission.NewForbidden(a, fmt.Errorf("spec.replicas is %d, but a StatefulSet with this template can have at most %d replicas; make the template smaller, or use several StatefulSets", replicas, most))
	}
	return nil
}

func needs(set *kubeappsv1.StatefulSet) int {
	if set == nil {
		return 0
	}
	return replicasOf(set) * memoryOfPod(set)
}

func replicasOf(set *kubeappsv1.StatefulSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}

// memoryOfPod estimates the memory, in bytes, for a pod and its claims.
func memoryOfPod(set *kubeappsv1.StatefulSet) int { return podMemory + expansion*set.Spec.Size() }
