package settings

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/warning"

	"github.com/slipway-platform/slipway/apigroup/settings/v1alpha1"
	"github.com/slipway-platform/slipway/internal/mirrorpod"
	"github.com/slipway-platform/slipway/internal/podpreset"
)

const (
	// excludeAnnotation excludes a pod from presets if its value is "true".
	excludeAnnotation = podpreset.Domain + "/exclude"
	// conflictAnnotation contains the reason why none of a pod's presets has been applied.
	conflictAnnotation = "podpreset.slipway.io/conflict"
	// platform is the user of Slipway's controllers. platformAccounts is the prefix of the names of
	// service accounts that they use to create pods.
	platform         = "system:openshift-master"
	platformAccounts = "system:serviceaccount:openshift-infra:"
)

// presets reads presets from the API server's cache.
type presets struct {
	stores map[schema.GroupResource]*registry.Store
}

// of returns the presets that apply to a pod, sorted by name.
func (p *presets) of(ctx context.Context, namespace string, pod *corev1.Pod) ([]v1alpha1.PodPreset, error) {
	list, err := p.stores[resource()].List(request.WithNamespace(ctx, namespace), &internalversion.ListOptions{ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list pod presets: %w", err)
	}
	var matching []v1alpha1.PodPreset
	for _, preset := range list.(*v1alpha1.PodPresetList).Items {
		selector, err := metav1.LabelSelectorAsSelector(&preset.Spec.Selector)
		if err != nil {
			return nil, fmt.Errorf("parse selector of pod preset %q: %w", preset.Name, err)
		}
		if selector.Matches(labels.Set(pod.Labels)) {
			matching = append(matching, preset)
		}
	}
	slices.SortFunc(matching, func(a, b v1alpha1.PodPreset) int { return strings.Compare(a.Name, b.Name) })
	return matching, nil
}

// injection is the PodPreset admission plugin. It adds presets to new pods, except pods that
// Slipway creates itself, such as build pods. The programs in those pods have permissions that
// users do not have. A user's environment variables or files could cause the programs to disclose
// or misuse these permissions. For all other pods with a preset, the admission plugin for security
// context constraints ignores the permissions of the pod's author.
type injection struct {
	*admission.Handler
	presets *presets
}

var _ admission.MutationInterface = &injection{}

func newInjection(p *presets) *injection {
	return &injection{admission.NewHandler(admission.Create), p}
}

// Admit adds all of a pod's presets or, if any of them conflict, none.
func (i *injection) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" || isPlatform(a.GetUserInfo().GetName()) {
		return nil
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || pod.Annotations[excludeAnnotation] == "true" || mirrorpod.Is(pod, a.GetUserInfo()) {
		return nil
	}
	matching, err := i.presets.of(ctx, a.GetNamespace(), pod)
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if len(matching) == 0 {
		return nil
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if err := apply(pod, matching); err != nil {
		text := strings.ReplaceAll(err.Error(), "\n", "; ")
		pod.Annotations[conflictAnnotation] = text
		warning.AddWarning(ctx, "", "no pod preset was applied to the pod: "+text)
		return nil
	}
	for _, preset := range matching {
		pod.Annotations[podpreset.Annotation(preset.Name)] = preset.ResourceVersion
	}
	return nil
}

func isPlatform(user string) bool {
	return user == platform || strings.HasPrefix(user, platformAccounts)
}
