package deployer

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
)

// TestStaleEventsAreSkipped checks that the deployer does not repeat a step because of an event
// that precedes the step.
func TestStaleEventsAreSkipped(t *testing.T) {
	t.Parallel()
	of := func(uid types.UID, generation int64) *corev1.ReplicationController {
		return &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Name: "web-1", UID: uid, Generation: generation}}
	}
	changes := watch.NewFakeWithChanSize(4, false)
	for _, rc := range []*corev1.ReplicationController{of("a", 1), of("a", 2), of("a", 3), of("b", 1)} {
		changes.Modify(rc)
	}
	changes.Stop()
	var values []string
	byName := map[string]*corev1.ReplicationController{"web-1": of("a", 1)}
	done, err := watchChanges(t.Context(), changes, byName, func(byName map[string]*corev1.ReplicationController) (bool, error) {
		rc := byName["web-1"]
		values = append(values, fmt.Sprint(rc.UID, rc.Generation))
		if len(values) == 1 {
			byName["web-1"] = of("a", 3) // result of a step
		}
		return false, nil
	})
	if want := []string{"a1", "a3", "b1"}; done || err != nil || !slices.Equal(values, want) {
		t.Errorf("%t, %v, seen %q, want %q", done, err, values, want)
	}
}
