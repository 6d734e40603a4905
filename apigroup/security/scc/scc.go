// Package scc defines the constraints of a new cluster (BuiltIn) and evaluates security context
// constraints. It is stateless and does not use a client. The admission plugins and the review APIs
// share it.
//
// Decide evaluates constraints in the order of Sort. Each constraint first completes the fields
// that the pod does not set (complete.go), and then checks every field of the result (check.go).
// The first constraint without objections accepts the pod.
//
// Source: OpenShift Container Platform 3.9 Architecture, 4.2.5 Security Context Constraints, and
// 3.11 Cluster Administration, chapter 15.
package scc

import (
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Constraints is a shorter name for the wire type.
type Constraints = securityv1.SecurityContextConstraints

// Decision is the result of evaluating a pod.
type Decision struct {
	// AllowedBy is the constraint that accepted the pod, or nil if no constraint accepted it.
	AllowedBy *Constraints
	// Pod is a copy of the pod that AllowedBy has completed, with the openshift.io/scc annotation.
	Pod *corev1.Pod
	// Objections lists the objections of the constraints that rejected the pod, in evaluation
	// order.
	Objections []Objection
}

// Objection explains why a constraint rejected a pod.
type Objection struct {
	// Constraint is the name of the constraint.
	Constraint string
	// Errors lists the errors in the pod's fields.
	Errors field.ErrorList
}

// Error formats the objection, for example as `restricted:
// [spec.containers[0].securityContext.privileged: Invalid value: true: ...]`.
func (o Objection) Error() string {
	texts := make([]string, 0, len(o.Errors))
	for _, err := range o.Errors {
		texts = append(texts, err.Error())
	}
	return o.Constraint + ": [" + strings.Join(texts, ", ") + "]"
}

// Reason returns the objections as a single line, or "" if there are no objections.
func (d Decision) Reason() string {
	texts := make([]string, 0, len(d.Objections))
	for _, objection := range d.Objections {
		texts = append(texts, objection.Error())
	}
	return strings.Join(texts, "; ")
}

// Decide evaluates constraints in the given order until a constraint accepts the pod. at is the
// field path of the pod's spec in error messages. Decide does not modify the pod.
func Decide(constraints []*Constraints, namespace *corev1.Namespace, pod *corev1.Pod, at *field.Path) Decision {
	return decide(constraints, namespace, pod, at, func(*corev1.Pod) bool { return true })
}

// Recheck is like Decide, but for an existing pod. An existing pod's spec is immutable, so a
// constraint that would complete the pod rejects it.
func Recheck(constraints []*Constraints, namespace *corev1.Namespace, pod *corev1.Pod, at *field.Path) Decision {
	return decide(constraints, namespace, pod, at, func(completed *corev1.Pod) bool {
		return equality.Semantic.DeepEqual(pod.Spec, completed.Spec)
	})
}

func decide(constraints []*Constraints, namespace *corev1.Namespace, pod *corev1.Pod, at *field.Path,
	suits func(*corev1.Pod) bool) Decision {
	var decision Decision
	for _, constraint := range constraints {
		completed, errs := try(constraint, namespace, pod, at)
		if len(errs) == 0 && !suits(completed) {
			errs = field.ErrorList{field.Forbidden(at, "the pod exists, and the constraint would change it")}
		}
		if len(errs) > 0 {
			decision.Objections = append(decision.Objections, Objection{constraint.Name, errs})
			continue
		}
		if completed.Annotations == nil {
			completed.Annotations = map[string]string{}
		}
		completed.Annotations[securityv1.ValidatedSCCAnnotation] = constraint.Name
		decision.AllowedBy, decision.Pod = constraint, completed
		return decision
	}
	return decision
}

// try completes a copy of the pod with one constraint, and checks the result.
func try(constraint *Constraints, namespace *corev1.Namespace, pod *corev1.Pod, at *field.Path) (*corev1.Pod, field.ErrorList) {
	resolved, err := resolve(constraint, namespace)
	if err != nil {
		return nil, field.ErrorList{field.Forbidden(at.Child("securityContext"), err.Error())}
	}
	completed := pod.DeepCopy()
	resolved.complete(completed)
	return completed, resolved.check(completed, at)
}
