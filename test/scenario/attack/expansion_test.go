package attack

import (
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestSmallRequestCannotExhaustMemory(t *testing.T) {
	s := tenants(t)
	pid, pods := s.controlPlane(t), kit.CorePath(s.evil, "pods?")
	const head = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "bomb"}, "spec": {"containers": [{}`
	for name, tt := range map[string]struct {
		body string
		kind func(error) bool
	}{
		"a million containers": {head + strings.Repeat(",{}", 1_000_000) + "]}}", apierrors.IsRequestEntityTooLargeError},
		"a million lines":      {"apiVersion: v1\nkind: Pod\nspec:\n  containers:\n" + strings.Repeat("  -\n", 700_000), apierrors.IsRequestEntityTooLargeError},
		"a long text, aliased": {"apiVersion: v1\nkind: Pod\na: &a " + strings.Repeat("x", 200_000) + "\nb: [" + strings.Repeat("*a,", 5_000) + strings.Repeat("1,", 100) + "]",
			apierrors.IsRequestEntityTooLargeError},
		"as many as allowed": {head + strings.Repeat(",{}", 19_000) + "]}}", func(err error) bool { return err != nil }},
	} {
		growth := peakDuring(t, pid, func() {
			var requests sync.WaitGroup
			for range 4 {
				requests.Go(func() {
					if response, err := s.mallory.Try("POST", pods, tt.body); !tt.kind(err) {
						t.Errorf("%s: %v %.300s", name, err, response)
					}
				})
			}
			requests.Wait()
		})
		t.Logf("%s: the memory grows by %d MiB", name, growth)
		if growth > maxGrowth {
			t.Errorf("%s: the memory of the control plane grows by %d MiB", name, growth)
		}
	}
}
