package nodeconfig

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// fetchInterval is the interval between requests until a master responds.
const fetchInterval = 10 * time.Second

// updatedVariable is the environment variable of a process that has restarted because the settings
// have changed. If masters had different settings, it would otherwise restart continuously.
const updatedVariable = "SLIPWAY_CLUSTER_SETTINGS_UPDATED"

// ClusterSettings is the component that updates a joined host's copy of the cluster's settings when
// the process starts. It runs until a master has responded.
type ClusterSettings struct {
	// File is the path of the host's MasterConfig.
	File string
	// Fetch requests the settings from a master.
	Fetch func(ctx context.Context) (string, error)
	// Check returns an error if this program does not accept the settings.
	Check func(settings string) error
}

// Name returns the component's name.
func (*ClusterSettings) Name() string { return "cluster-settings" }

// Run updates the file. It returns ErrRestart if the file has changed.
func (c *ClusterSettings) Run(ctx context.Context, ready func()) error {
	restarted := os.Getenv(updatedVariable) != ""
	if err := os.Unsetenv(updatedVariable); err != nil {
		return fmt.Errorf("change environment: %w", err)
	}
	ready() // the process works with the previous settings until then
	var settings, failure string
	err := wait.PollUntilContextCancel(ctx, fetchInterval, true, func(ctx context.Context) (done bool, err error) {
		if settings, err = c.Fetch(ctx); err == nil {
			return true, nil
		}
		if text := err.Error(); text != failure && ctx.Err() == nil {
			failure = text
			slog.Info("the settings of the cluster are not available yet", "error", err)
		}
		return false, nil
	})
	if err != nil {
		return nil //nolint:nilerr // ctx is done
	}
	changed, err := c.update(settings, restarted)
	if err != nil {
		slog.Warn("the settings of the cluster are not updated", "error", err)
	}
	if changed {
		return errors.Join(os.Setenv(updatedVariable, "true"), ErrRestart)
	}
	<-ctx.Done()
	return nil
}

// update replaces the file if the settings differ from it. restarted means that the process has
// just restarted because of such a change.
func (c *ClusterSettings) update(settings string, restarted bool) (changed bool, err error) {
	current, err := os.ReadFile(c.File)
	if err != nil {
		return false, fmt.Errorf("read settings of the cluster: %w", err)
	}
	if string(current) == settings {
		return false, nil
	}
	if restarted {
		return false, errors.New("the masters have different settings; see `slipway status` on the masters")
	}
	if err := c.Check(settings); err != nil {
		return false, err
	}
	slog.Info("the settings of the cluster have changed")
	return true, atomicfile.Write(c.File, []byte(settings), 0o600)
}
