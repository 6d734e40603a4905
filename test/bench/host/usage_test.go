package host

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMergeSumsByNameAndSortsPodsLast(t *testing.T) {
	got := Merge([]Usage{
		{"pause", 1, 1, 0.1}, {"kubelet", 30, 10, 1}, {"containerd-shim-runc-v2", 5, 2, 0.2}, {"pause", 3, 1, 0.1}, {"etcd", 20, 15, 2},
	})
	want := []Usage{{"etcd", 20, 15, 2}, {"kubelet", 30, 10, 1}, {"containerd-shim-runc-v2", 5, 2, 0.2}, {"pause", 4, 2, 0.2}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := Total(got, func(u Usage) float64 { return float64(u.PSS) }); got != 50 {
		t.Errorf("the total is %v, want 50: pods' processes do not count", got)
	}
}
