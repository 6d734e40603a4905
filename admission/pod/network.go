package pod

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/slipway-platform/slipway/internal/macvlan"
	"github.com/slipway-platform/slipway/internal/podbandwidth"
)

// network is the PodNetwork plugin. It checks the annotations that configure a pod's network: the
// bandwidth limits and the request for a macvlan device. It allows a macvlan device only for a pod
// with a privileged container. Such a pod requires a security context constraint that allows
// privileged containers. In OpenShift 3.11, a pod that requested a macvlan device but had no
// privileged container never started.
type network struct{ *admission.Handler }

var _ admission.ValidationInterface = network{}

func newNetwork() network { return network{admission.NewHandler(admission.Create, admission.Update)} }

// Validate rejects pods with invalid annotations. An update can keep invalid annotations that the
// pod already has, because earlier versions of Slipway accepted them.
func (network) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	var old corev1.Pod
	if previous, ok := a.GetOldObject().(*corev1.Pod); ok && previous != nil {
		old = *previous
	}
	changed := func(name string) bool {
		value, ok := pod.Annotations[name]
		previous, existed := old.Annotations[name]
		return ok && (!existed || value != previous)
	}
	var errs []error
	if changed(podbandwidth.Ingress) || changed(podbandwidth.Egress) {
		_, _, err := podbandwidth.Parse(pod.Annotations)
		errs = append(errs, err)
	}
	if changed(macvlan.Annotation) {
		request, err := macvlan.Parse(pod.Annotations)
		if err == nil && request.Wanted && !isPrivileged(pod) {
			err = fmt.Errorf("annotation %s requires a privileged container; see the security context constraint privileged", macvlan.Annotation)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

// isPrivileged reports whether a pod has a privileged container. The result never changes, because
// the security contexts of a pod's containers are immutable.
func isPrivileged(pod *corev1.Pod) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return c.SecurityContext != nil && c.SecurityContext.Privileged != nil && *c.SecurityContext.Privileged
	})
}
