package groupconfig

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

const (
	// fetchInterval is the interval between requests until the masters respond with settings.
	fetchInterval = 10 * time.Second
	// refreshInterval is the longest interval between requests. Normally, MasterServes causes the
	// next request.
	refreshInterval = 10 * time.Minute
)

// updatedVariable is the environment variable that marks a process that has restarted because the
// settings have changed. Without this mark, the process would restart continuously if masters with
// different versions wrote the settings differently.
const updatedVariable = "SLIPWAY_CLUSTER_SETTINGS_UPDATED"

// ClusterSettings is the component that updates a joined host's copy of the cluster's settings.
type ClusterSettings struct {
	// File is the path of the host's MasterConfig.
	File string
	// Fetch requests the settings from a master.
	Fetch func(ctx context.Context) (string, error)
	// Check returns an error if this program does not accept the settings.
	Check func(settings string) error
	// MasterServes receives a value after a master has started, because the master's settings might
	// have changed.
	MasterServes <-chan struct{}
}

// Name returns the component's name.
func (*ClusterSettings) Name() string { return "cluster-settings" }

// Run updates the file until ctx is done. It returns ErrRestart if the file has changed.
func (c *ClusterSettings) Run(ctx context.Context, ready func()) error {
	restarted := os.Getenv(updatedVariable) != ""
	if err := os.Unsetenv(updatedVariable); err != nil {
		return fmt.Errorf("change environment: %w", err)
	}
	ready() // the process works with the previous settings
	if restarted {
		// Masters that were already serving must not trigger another request.
		select {
		case <-c.MasterServes:
		default:
		}
	}
	for {
		settings, err := c.fetch(ctx)
		if err != nil {
			return nil //nolint:nilerr // ctx is done
		}
		changed, err := c.update(settings, restarted)
		if err != nil {
			slog.Warn("cannot update the cluster settings", "error", err)
		}
		if changed {
			return errors.Join(os.Setenv(updatedVariable, "true"), ErrRestart)
		}
		restarted = restarted && err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-c.MasterServes:
		case <-time.After(refreshInterval):
			restarted = false
		}
	}
}

// fetch repeats the request until the masters respond with settings or ctx is done.
func (c *ClusterSettings) fetch(ctx context.Context) (settings string, err error) {
	failure := ""
	err = wait.PollUntilContextCancel(ctx, fetchInterval, true, func(ctx context.Context) (done bool, err error) {
		if settings, err = c.Fetch(ctx); err == nil {
			return true, nil
		}
		if text := err.Error(); text != failure && ctx.Err() == nil {
			failure = text
			slog.Info("the cluster settings are not available yet", "error", err)
		}
		return false, nil
	})
	return settings, err
}

// update replaces the file if the settings differ from it. restarted means that the process has
// just restarted because of an earlier update.
func (c *ClusterSettings) update(settings string, restarted bool) (changed bool, err error) {
	current, err := os.ReadFile(c.File)
	if err != nil {
		return false, fmt.Errorf("read cluster settings: %w", err)
	}
	if string(current) == settings {
		return false, nil
	}
	if restarted {
		return false, errors.New("the masters return different settings each time; use the same version of slipway on all hosts")
	}
	if err := c.Check(settings); err != nil {
		return false, err
	}
	slog.Info("the cluster settings have changed")
	return true, atomicfile.Write(c.File, []byte(settings), 0o600)
}
