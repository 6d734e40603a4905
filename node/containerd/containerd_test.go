package containerd_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/node/containerd"
	"github.com/slipway-platform/slipway/node/containerd/containerdtest"
)

// logged runs the command until containerd is ready, stops it with SIGTERM, and returns its log.
func logged(t *testing.T, r containerd.Runtime, command *exec.Cmd) string {
	t.Helper()
	var log bytes.Buffer
	command.Stdout, command.Stderr = &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ready := r.WaitReady(ctx)
	if err := command.Process.Signal(unix.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := command.Wait(); err != nil {
		t.Errorf("containerd exits with: %v", err)
	}
	if ready != nil {
		t.Fatalf("%v\n%s", ready, &log)
	}
	return log.String()
}

// assertQuiet checks that containerd logged no errors.
func assertQuiet(t *testing.T, log string) {
	t.Helper()
	// Ignore the error that containerd logs if it is stopped during garbage collection.
	log = strings.ReplaceAll(log, `level=error msg="failed to finish collection context"`, "")
	for _, complaint := range []string{"level=error", "level=fatal", "unknown key", "unknown plugin"} {
		if strings.Contains(log, complaint) {
			t.Errorf("containerd logs %q:\n%s", complaint, log)
		}
	}
}

func TestContainerdStartsAndStops(t *testing.T) {
	r, _ := containerdtest.New(t)
	for _, level := range []string{"", "debug"} {
		r.LogLevel = level
		command, err := r.Command(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		assertQuiet(t, logged(t, r, command))
	}
}

func TestOnlyRootCanOpenSocket(t *testing.T) {
	r, _ := containerdtest.New(t)
	containerdtest.Start(t, r)
	info, err := os.Stat(r.Socket)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		t.Errorf("mode %v", info.Mode())
	}
}

func TestCanceledContextStopsContainerd(t *testing.T) {
	r, _ := containerdtest.New(t)
	containerdtest.Start(t, r).Stop(t)
	if err := r.Ready(t.Context()); err == nil {
		t.Error("containerd is still ready")
	}
}

func TestNativeSnapshotterWithoutOverlay(t *testing.T) {
	r, _ := containerdtest.New(t)
	command, err := r.Command(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	// Simulate a host without overlay mounts.
	data, err := r.ConfigWithoutOverlay()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.State, "config.toml"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	assertQuiet(t, logged(t, r, command))
}

func TestWaitReadyReportsLastReason(t *testing.T) {
	r := containerd.Runtime{Socket: filepath.Join(t.TempDir(), "none.sock")}
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	err := r.WaitReady(ctx)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "none.sock") {
		t.Errorf("error %v", err)
	}
}

// execve(2), which starts containerd, keeps all values of an environment variable. Programs use the
// first value.
func TestDirectoryOfRuncPrecedesPath(t *testing.T) {
	r, _ := containerdtest.New(t)
	command, err := r.Command(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, variable := range command.Env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			paths = append(paths, value)
		}
	}
	if len(paths) != 1 || !strings.HasPrefix(paths[0], filepath.Dir(r.Runc)+":") {
		t.Errorf("containerd gets the paths %q", paths)
	}
}
