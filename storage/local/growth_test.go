package local_test

import (
	"testing"

	"github.com/slipway-platform/slipway/internal/usermode"
)

// TestMountedExt4IsExpanded runs in its own kernel, in which root always has CAP_SYS_RESOURCE.
func TestMountedExt4IsExpanded(t *testing.T) {
	if !usermode.In(t, "loop") {
		return
	}
	if !canGrowMounted() {
		t.Fatal("root lacks CAP_SYS_RESOURCE")
	}
	TestOnlineExpansion(t)
}
