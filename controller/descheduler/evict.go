package descheduler

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	policyclient "k8s.io/client-go/kubernetes/typed/policy/v1"
)

// reporter receives the events from the upstream evictor, which reports its results in no other
// way.
type reporter struct{ report func(Eviction) }

// Eventf reports an eviction or a failed eviction.
func (r reporter) Eventf(pod, _ runtime.Object, kind, reason, _, note string, args ...any) {
	evicted, ok := pod.(*corev1.Pod)
	if !ok {
		return
	}
	if kind == corev1.EventTypeNormal {
		r.report(Eviction{Pod: evicted, Strategy: reason})
		return
	}
	text := fmt.Sprintf(note, args...)
	if _, cause, ok := strings.Cut(text, " failed: "); ok {
		text = cause
	}
	r.report(Eviction{Pod: evicted, Failure: text})
}

// dryRun is a client whose evictions are only dry runs.
type dryRun struct{ kubernetes.Interface }

// PolicyV1 returns a client for the policy API group.
func (d dryRun) PolicyV1() policyclient.PolicyV1Interface {
	return dryRunPolicy{d.Interface.PolicyV1()}
}

type dryRunPolicy struct{ policyclient.PolicyV1Interface }

// Evictions returns an eviction client for a namespace.
func (d dryRunPolicy) Evictions(namespace string) policyclient.EvictionInterface {
	return dryRunEvictions{d.PolicyV1Interface.Evictions(namespace)}
}

type dryRunEvictions struct{ policyclient.EvictionInterface }

// Evict sends the eviction as a dry run, so that the API server only validates it.
func (d dryRunEvictions) Evict(ctx context.Context, eviction *policyv1.Eviction) error {
	checked := eviction.DeepCopy()
	if checked.DeleteOptions == nil {
		checked.DeleteOptions = &metav1.DeleteOptions{}
	}
	checked.DeleteOptions.DryRun = []string{metav1.DryRunAll}
	return d.EvictionInterface.Evict(ctx, checked)
}
