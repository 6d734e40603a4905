package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
)

// oomScore is the score of the platform's processes, the same as that of the kubelet upstream. The
// kernel kills any container before them.
const oomScore = -999

// ProtectFromOOM sets the score of this process, which its child processes inherit. Containers have
// other scores. Lowering the score needs CAP_SYS_RESOURCE. Without it, the kernel still kills
// containers first, because their scores are higher.
func ProtectFromOOM() error {
	err := os.WriteFile("/proc/self/oom_score_adj", []byte(strconv.Itoa(oomScore)), 0o644)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("set OOM score: %w", err)
	}
	return nil
}
