package security

import (
	"context"
	"fmt"
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
)

// check is the admission plugin: it completes a pod by the first constraint that accepts it, of those that the user and the
// pod's service account may use, and refuses a pod that none accepts. Later changes of a pod must still be accepted.
type check struct {
	*admission.Handler
	judge *judge
}

var (
	_ admission.MutationInterface   = &check{}
	_ admission.ValidationInterface = &check{}
)

func newCheck(judge *judge) *check {
	return &check{admission.NewHandler(admission.Create, admission.Update), judge}
}

// Admit completes a pod that is being made, and containers that are added to a pod for debugging.
func (c *check) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := checked(a)
	debugs := a.GetSubresource() != ""
	if !ok || a.GetOperation() != admission.Create && !debugs {
		return nil
	}
	if !debugs {
		scc.CarryAnnotations(pod)
	}
	decision, err := c.judge.decide(ctx, a.GetNamespace(), pod, field.NewPath("spec"), c.subjects(a, pod))
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	if decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	if debugs { // the rest of the pod stays
		pod.Spec.EphemeralContainers = decision.Pod.Spec.EphemeralContainers
		return nil
	}
	pod.Spec = decision.Pod.Spec
	pod.Annotations = decision.Pod.Annotations
	return nil
}

// Validate tries again what other plugins may have changed since Admit, and every change of a pod's spec.
func (c *check) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := checked(a)
	if !ok {
		return nil
	}
	if a.GetOperation() == admission.Update {
		old, known := a.GetOldObject().(*corev1.Pod)
		if known && (pod.DeletionTimestamp != nil || unchanged(old, pod)) {
			return nil
		}
	}
	constraints, namespace, err := c.judge.court(ctx, a.GetNamespace(), c.subjects(a, pod))
	if err != nil {
		return admission.NewForbidden(a, err)
	}
	decision := scc.Recheck(constraints, namespace, pod, field.NewPath("spec"))
	if decision.AllowedBy == nil {
		return refuse(a, decision)
	}
	return nil
}

// checked is the pod of a request that constraints are for. A pod that a node mirrors from a file runs already.
func checked(a admission.Attributes) (*corev1.Pod, bool) {
	if a.GetResource().GroupResource() != corev1.Resource("pods") || a.GetSubresource() != "" && a.GetSubresource() != "ephemeralcontainers" {
		return nil, false
	}
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok {
		return nil, false
	}
	_, mirrored := pod.Annotations[corev1.MirrorPodAnnotationKey]
	return pod, !mirrored || !slices.Contains(a.GetUserInfo().GetGroups(), user.NodesGroup)
}

// unchanged tells whether an update leaves what constraints look at.
func unchanged(old, pod *corev1.Pod) bool {
	return equality.Semantic.DeepEqual(old.Spec, pod.Spec) &&
		old.Annotations[securityv1.ValidatedSCCAnnotation] == pod.Annotations[securityv1.ValidatedSCCAnnotation]
}

// subjects are the user who makes the request and the pod's service account.
func (c *check) subjects(a admission.Attributes, pod *corev1.Pod) []user.Info {
	return []user.Info{a.GetUserInfo(), account(a.GetNamespace(), pod)}
}

// refuse says what each constraint objected to.
func refuse(a admission.Attributes, decision scc.Decision) error {
	if len(decision.Objections) == 0 {
		return admission.NewForbidden(a, fmt.Errorf("no security context constraint may be used by the user %q or the pod's service account", a.GetUserInfo().GetName()))
	}
	return admission.NewForbidden(a, fmt.Errorf("unable to validate against any security context constraint: %s", decision.Reason()))
}
