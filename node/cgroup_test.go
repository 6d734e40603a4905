package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTwoNodesDoNotShareACgroup(t *testing.T) {
	root := fmt.Sprintf("/slipway-test-%d", os.Getpid())
	t.Cleanup(func() {
		for _, dir := range cgroupHierarchies() {
			_ = os.Remove(filepath.Join(dir, root))
		}
	})
	if err := makeCgroup(root); err != nil {
		t.Fatal(err)
	}
	first, err := lockCgroup(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lockCgroup(root); err == nil || !strings.Contains(err.Error(), "slipway.cgroupRoot") {
		t.Errorf("a second node: %v", err)
	}
	if err := first.Close(); err != nil { // as the end of its process does
		t.Fatal(err)
	}
	next, err := lockCgroup(root)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
	if _, err := lockCgroup(root + "-missing"); err == nil {
		t.Error("a cgroup that is not there is locked")
	}
}
