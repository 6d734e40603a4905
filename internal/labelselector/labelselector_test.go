package labelselector

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestSize(t *testing.T) {
	for name, tt := range map[string]struct {
		selector *metav1.LabelSelector
		want     int
	}{
		"no selector": {nil, 0},
		"empty":       {&metav1.LabelSelector{}, 0},
		"both kinds": {&metav1.LabelSelector{
			MatchLabels:      map[string]string{"app": "web", "tier": "front"},
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "zone", Values: []string{"a", "b"}}, {Key: "disk"}},
		}, 6},
	} {
		if got := Size(tt.selector); got != tt.want {
			t.Errorf("%s: size %d, want %d", name, got, tt.want)
		}
	}
}
