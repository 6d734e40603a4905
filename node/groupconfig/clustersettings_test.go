package groupconfig

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// newClusterSettings returns the component for a file that contains "former".
func newClusterSettings(t *testing.T, fetched string) *ClusterSettings {
	t.Helper()
	file := filepath.Join(t.TempDir(), "master-config.yaml")
	if err := os.WriteFile(file, []byte("former"), 0o600); err != nil {
		t.Fatal(err)
	}
	return &ClusterSettings{
		File: file, Fetch: func(context.Context) (string, error) { return fetched, nil },
		Check: func(settings string) error {
			if settings == "bad" {
				return errors.New("unknown key")
			}
			return nil
		},
	}
}

func (c *ClusterSettings) expectFile(t *testing.T, want string) {
	t.Helper()
	if got, err := os.ReadFile(c.File); err != nil || string(got) != want {
		t.Errorf("the file contains %q, %v, want %q", got, err, want)
	}
}

func TestProcessRestartsOnceWithChangedSettingsOfCluster(t *testing.T) {
	t.Setenv(updatedVariable, "") // restores the variable after the test
	c := newClusterSettings(t, "changed")
	if err := c.Run(t.Context(), func() {}); !errors.Is(err, ErrRestart) {
		t.Fatalf("the component ended with %v, want a restart", err)
	}
	c.expectFile(t, "changed")

	other := newClusterSettings(t, "of another master")
	componenttest.Run(t, other.Run)
	eventually.True(t, "the environment is reset", func() bool { return os.Getenv(updatedVariable) == "" })
	other.expectFile(t, "former")
}

// The masters have different versions, and describe the same settings in different ways. The
// balancer has found all of them before the process fetches the settings.
func TestProcessDoesNotRestartAgainForOtherMaster(t *testing.T) {
	t.Setenv(updatedVariable, "true")
	c := newClusterSettings(t, "")
	serves, requests := make(chan struct{}, 1), make(chan struct{})
	c.MasterServes = serves
	serves <- struct{}{}
	c.Fetch = func(context.Context) (string, error) {
		requests <- struct{}{}
		return "of another master", nil
	}
	componenttest.Run(t, c.Run)
	<-requests
	serves <- struct{}{} // blocks if Run has not discarded the earlier value
	<-requests
	serves <- struct{}{}
	<-requests
	c.expectFile(t, "former")
}

// The masters restart with changed settings while the node process runs.
func TestSettingsOfClusterAreFetchedAfterMasterStarts(t *testing.T) {
	t.Setenv(updatedVariable, "")
	c := newClusterSettings(t, "former")
	serves, fetched, ended := make(chan struct{}), make(chan struct{}, 1), make(chan error, 1)
	c.MasterServes = serves
	c.Fetch = func(context.Context) (string, error) {
		select {
		case fetched <- struct{}{}:
			return "former", nil
		default:
			return "changed", nil
		}
	}
	go func() { ended <- c.Run(t.Context(), func() {}) }()
	serves <- struct{}{} // received after the first request
	if err := <-ended; !errors.Is(err, ErrRestart) {
		t.Fatalf("the component ended with %v, want a restart", err)
	}
	c.expectFile(t, "changed")
}

func TestUnusableSettingsOfClusterChangeNothing(t *testing.T) {
	for _, fetched := range []string{"former", "bad"} {
		c := newClusterSettings(t, fetched)
		requests := make(chan struct{}, 1)
		fetch := c.Fetch
		c.Fetch = func(ctx context.Context) (string, error) {
			requests <- struct{}{}
			return fetch(ctx)
		}
		componenttest.Run(t, c.Run)
		<-requests
		c.expectFile(t, "former")
	}
}
