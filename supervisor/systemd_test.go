package supervisor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/usermode"
)

// runService supervises a process until systemd stops it. After it receives SIGUSR1, it hangs.
func runService(dir string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	worker := Process{
		Name: "worker", Components: []ComponentStatus{{Name: "engine"}}, LogFile: filepath.Join(dir, "log"), StopTimeout: 5 * time.Second,
		Command: []string{"/bin/sh", "-c", reportReady + " exec sleep infinity"},
	}
	s := New("v1", dir, filepath.Join(dir, "socket"), []Process{worker})
	hang := make(chan os.Signal, 1)
	signal.Notify(hang, syscall.SIGUSR1)
	go func() {
		<-hang
		s.mu.Lock()
	}()
	if err := s.Run(ctx); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// manager is the PID of a systemd process that runs in its own PID namespace.
type manager string

// startSystemd starts systemd as the first process in a PID namespace, with the unit that `slipway
// install` writes. The service runs the test executable.
func startSystemd(t *testing.T) (m manager) {
	t.Helper()
	if err := unix.Mount("cgroup2", "/sys/fs/cgroup", "cgroup2", 0, ""); err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit, err := os.ReadFile("../cmd/slipway/installation/slipway.service")
	if err != nil {
		t.Fatal(err)
	}
	const units = "/run/units"
	service := strings.NewReplacer("COMMAND", program, "WatchdogSec=60", fmt.Sprintf("WatchdogSec=2\nEnvironment=%s=service %s=%s", role, directory, t.TempDir())).Replace(string(unit))
	files := map[string]string{"slipway.service": service, "default.target": "[Unit]\nWants=slipway.service\n"}
	for _, name := range []string{"sysinit", "basic", "shutdown", "network-online"} {
		files[name+".target"] = "[Unit]\nDefaultDependencies=no\n"
	}
	if err := os.Mkdir(units, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(units, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	systemd := exec.Command("unshare", "--fork", "--pid", "--mount-proc", "/lib/systemd/systemd", "--system", "--log-target=console", "--show-status=no")
	systemd.Env = []string{"PATH=" + os.Getenv("PATH"), "SYSTEMD_UNIT_PATH=" + units, "container=test"}
	systemd.Stdout, systemd.Stderr = os.Stdout, os.Stderr
	if err := systemd.Start(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "systemd is a child of unshare", func() bool {
		output, err := exec.Command("pgrep", "--parent", strconv.Itoa(systemd.Process.Pid)).Output()
		m = manager(strings.TrimSpace(string(output)))
		return err == nil
	})
	return m
}

// systemctl runs systemctl in systemd's PID namespace, because systemd accepts no clients from
// other namespaces.
func (m manager) systemctl(arguments ...string) (string, error) {
	command := append([]string{"--target=" + string(m), "--pid", "--mount", "systemctl"}, arguments...)
	output, err := exec.Command("nsenter", append(command, "slipway.service")...).CombinedOutput()
	return strings.TrimSpace(string(output)), err
}

// property returns a property of the service, or the error text.
func (m manager) property(name string) string {
	output, _ := m.systemctl("show", "--property="+name, "--value")
	return output
}

// TestUnitOfSystemd checks with a real systemd that the service becomes active when it is ready,
// and that the watchdog restarts a service that hangs.
func TestUnitOfSystemd(t *testing.T) {
	if !usermode.In(t) {
		return
	}
	systemd := startSystemd(t)
	state := func() string { return systemd.property("ActiveState") }
	eventually.Equal(t, "the state of the service", state, "active")
	if process, kind := systemd.property("MainPID"), systemd.property("Type"); process == "0" || kind != "notify" {
		t.Errorf("the main process is %s, and the type %q", process, kind)
	}
	if output, err := systemd.systemctl("kill", "--kill-whom=main", "--signal=SIGUSR1"); err != nil {
		t.Fatalf("let the service hang: %v\n%s", err, output)
	}
	eventually.Equal(t, "the number of restarts", func() string { return systemd.property("NRestarts") }, "1")
	eventually.Equal(t, "the state of the service after its restart", state, "active")
	if output, err := systemd.systemctl("stop"); err != nil {
		t.Fatalf("stop the service: %v\n%s", err, output)
	}
	if got, result := state(), systemd.property("Result"); got != "inactive" || result != "success" {
		t.Errorf("after the stop, the service is %s, with the result %q", got, result)
	}
}
