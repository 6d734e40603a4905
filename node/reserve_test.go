package node

import (
	"path/filepath"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestReserveLeavesMostResourcesToPods(t *testing.T) {
	const gi = 1 << 30
	for _, test := range []struct {
		processors         int
		memory, pids, disk uint64
		want               Reserve
	}{
		{1, 2 * gi, 32768, 20 * gi, Reserve{MilliCPU: 50, Memory: gi / 2, PIDs: 2048, Disk: gi}},
		{2, 24 * gi, 32768, 250 * gi, Reserve{MilliCPU: 100, Memory: gi, PIDs: 2048, Disk: 10 * gi}},
		{64, 512 * gi, 1 << 22, 4096 * gi, Reserve{MilliCPU: 3200, Memory: gi, PIDs: 8192, Disk: 10 * gi}},
	} {
		if got := reserveOf(test.processors, test.memory, test.pids, test.disk); got != test.want {
			t.Errorf("reserve of %+v is %+v", test, got)
		}
		// The kubelet must evict pods before they reach their common limit.
		if threshold := test.pids / 10; test.want.PIDs >= threshold {
			t.Errorf("%d processes are reserved, not less than the %d at which pods are evicted", test.want.PIDs, threshold)
		}
	}
}

func TestReserveResourcesOfThisMachine(t *testing.T) {
	reserve, err := ReserveOf(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range reserve.resources() {
		if quantity, err := resource.ParseQuantity(value); err != nil || quantity.Sign() <= 0 {
			t.Errorf("%s: %q, %v", name, value, err)
		}
	}
	if evictionHard()["pid.available"] == "" || evictionHard()["nodefs.available"] == "" {
		t.Errorf("thresholds are %v", evictionHard())
	}
}

func TestReserveUsesDiskOfMissingDirectory(t *testing.T) {
	dir := t.TempDir()
	want, err := ReserveOf(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReserveOf(filepath.Join(dir, "kubelet", "later"))
	if err != nil || got.Disk != want.Disk {
		t.Errorf("%d bytes, %v, want %d bytes", got.Disk, err, want.Disk)
	}
}
