package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// oomScore is the OOM score adjustment of the platform's processes. It is the same as the kubelet's
// adjustment upstream. The kernel kills any container before it kills these processes.
const oomScore = -999

// ProtectFromOOM sets the OOM score adjustment of this process. Its child processes inherit the
// adjustment. Lowering the adjustment requires CAP_SYS_RESOURCE. Even without this capability, the
// kernel kills containers first, because their scores are higher.
func ProtectFromOOM() error {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("set OOM score: %w", err)
	}
	return nil
}
