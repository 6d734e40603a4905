package platform

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/upgrade"
)

// versionFile contains the version of Kubernetes of the control plane that was ready last.
func (h *Host) versionFile() string { return h.path("master", "kubernetes-version") }

// checkVersion returns an error if this program must not continue with the data of another version.
func (h *Host) checkVersion() error {
	former, err := os.ReadFile(h.versionFile())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read version of the data: %w", err)
	}
	if err := upgrade.CheckJump(strings.TrimSpace(string(former)), kube.Version()); err != nil {
		return fmt.Errorf("start on the data in %q: %w", h.DataDir, err)
	}
	return nil
}

// recordVersion records that the control plane of this program was ready.
func (h *Host) recordVersion() error {
	return atomicfile.Write(h.versionFile(), []byte(kube.Version()+"\n"), 0o600)
}
