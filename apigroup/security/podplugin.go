package security

import (
	"context"
	"fmt"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/internal/mirrorpod"
	"github.com/slipway-platform/slipway/internal/podpreset"
)

// podPlugin is the admission plugin that checks pods. It evaluates the constraints that the user
// and the pod's service account are allowed to use. The first constraint that accepts the pod also
// completes it. The plugin rejects a pod that no constraint accepts. A constraint must also accept
// later changes to a pod.
type podPlugin struct {
	*admission.Handler
	evaluator *evaluator
}

var (
	_ admission.MutationInterface   = &podPlugin{}
	_ admission.ValidationInterface = &podPlugin{}
)

func newPodPlugin(evaluator *evaluator) *podPlugin {
	return &podPlugin{admission.NewHandler(admission.Create, admission.Update), evaluator}
}

// Admit completes new pods, and debug containers that are added to pods.
func (c *podPlugin) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := checked(a)
	debugs := a.GetSubresource() != ""
	if !ok || a.GetOperation() != admission.Create && !debugs {
		return nil
	}
	if !debugs {
		scc.CarryAnnotations(pod)
	}
	decision, err := c.evaluator.decide(ctx, a.GetNamespace(), pod, field.NewPath("spec"), c.subjects(a, pod))
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	if debugs { // only ephemeral containers can change
		pod.Spec.EphemeralContainers = decision.Pod.Spec.EphemeralContainers
		return nil
	}
	pod.Spec = decision.Pod.Spec
	pod.Annotations = decision.Pod.Annotations
	return nil
}

// Validate checks a new pod again after other plugins have changed it. It also checks every change
// to a pod's spec.
func (c *podPlugin) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := checked(a)
	if !ok {
		return nil
	}
	if a.GetOperation() == admission.Update {
		old, isPod := a.GetOldObject().(*corev1.Pod)
		if isPod && (pod.DeletionTimestamp != nil || unchanged(old, pod)) {
			return nil
		}
	}
	constraints, namespace, err := c.evaluator.candidates(ctx, a.GetNamespace(), c.subjects(a, pod))
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	decision := scc.Recheck(constraints, namespace, pod, field.NewPath("spec"))
	if decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	return nil
}

// checked returns a request's pod, and reports whether constraints apply to it. Constraints do not
// apply to mirror pods, which are already running.
func checked(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" && a.GetSubresource() != "ephemeralcontainers" {
		return nil, false
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil, false
	}
	return pod, !mirrorpod.Is(pod, a.GetUserInfo())
}

// unchanged reports whether an update changes none of the fields that constraints check.
func unchanged(old, pod *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(old.Spec, pod.Spec) &&
		old.Annotations[securityv1.ValidatedSCCAnnotation] == pod.Annotations[securityv1.ValidatedSCCAnnotation]
}

// subjects returns the request's user and the pod's service account. If PodPresets have changed a
// new pod, it returns only the service account, because the pod's author did not write the
// PodPresets. Otherwise, project members could use the permissions of an administrator who creates
// a pod in the project.
func (c *podPlugin) subjects(a admission.Attributes, pod *corev1.Pod) []user.Info {
	own := account(a.GetNamespace(), pod)
	if a.GetOperation() == admission.Create && podpreset.Applied(pod.Annotations) {
		return []user.Info{own}
	}
	return []user.Info{a.GetUserInfo(), own}
}

// refuse returns an error that contains each constraint's objections.
func refuse(a admission.Attributes, decision scc.Decision) error {
	if len(decision.Objections) == 0 {
		return admission.NewForbidden(a, fmt.Errorf("no security context constraint may be used by the user %q or the pod's service account",
			a.GetUserInfo().GetName()))
	}
	return admission.NewForbidden(a, fmt.Errorf("unable to validate against any security context constraint: %s", decision.Reason()))
}
