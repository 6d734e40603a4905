package pod

import (
	"context"
	"fmt"
	"io"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"

	"github.com/slipway-platform/slipway/apiserver"
)

// deadlineAnnotation is the project annotation that overrides the cluster-wide limit, in seconds.
const deadlineAnnotation = "openshift.io/active-deadline-seconds-override"

// duration is the RunOnceDuration plugin. It caps the active deadline of a run-once pod
// (restartPolicy Never or OnFailure) at its project's limit or, if the project has no limit, at the
// cluster-wide limit. It does not change shorter deadlines.
type duration struct {
	*admission.Handler
	seconds    *int64
	namespaces corelisters.NamespaceLister
}

var _ admission.MutationInterface = &duration{}

func newDuration(reader io.Reader) (*duration, error) {
	config := struct {
		metav1.TypeMeta `json:",inline"`
		Seconds         *int64 `json:"activeDeadlineSecondsOverride"`
	}{}
	if err := apiserver.DecodeConfig(reader, "RunOnceDurationConfig", &config); err != nil {
		return nil, fmt.Errorf("read configuration of %s: %w", RunOnceDuration, err)
	}
	if config.Seconds != nil && *config.Seconds <= 0 {
		return nil, fmt.Errorf("read configuration of %s: activeDeadlineSecondsOverride is %d, must be positive", RunOnceDuration, *config.Seconds)
	}
	return &duration{Handler: admission.NewHandler(admission.Create), seconds: config.Seconds}, nil
}

// SetExternalKubeInformerFactory stores the namespace lister.
func (d *duration) SetExternalKubeInformerFactory(factory informers.SharedInformerFactory) {
	d.namespaces = factory.Core().V1().Namespaces().Lister()
	d.SetReadyFunc(factory.Core().V1().Namespaces().Informer().HasSynced)
}

// ValidateInitialization returns an error if there is no lister.
func (d *duration) ValidateInitialization() error {
	if d.namespaces == nil {
		return fmt.Errorf("initialize %s: no namespace lister", RunOnceDuration)
	}
	return nil
}

// Admit sets the pod's active deadline.
func (d *duration) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil || pod.Spec.RestartPolicy != corev1.RestartPolicyNever && pod.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return nil
	}
	if !d.WaitForReady() {
		return admission.NewForbidden(a, fmt.Errorf("the namespace cache is not ready; try again"))
	}
	namespace, err := d.namespaces.Get(a.GetNamespace())
	if err != nil {
		return admission.NewForbidden(a, fmt.Errorf("find project: %w", err))
	}
	limit := d.seconds
	if text, ok := namespace.Annotations[deadlineAnnotation]; ok {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds <= 0 {
			return admission.NewForbidden(a, fmt.Errorf("annotation %s of project %q is %q, must be a positive number of seconds",
				deadlineAnnotation, namespace.Name, text))
		}
		limit = &seconds
	}
	if limit != nil && (pod.Spec.ActiveDeadlineSeconds == nil || *pod.Spec.ActiveDeadlineSeconds > *limit) {
		pod.Spec.ActiveDeadlineSeconds = limit
	}
	return nil
}
