package installation

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// machine is a Machine with a temporary root directory. It records the systemctl calls.
type machine struct {
	Machine
	calls []string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{}
	m.Root = t.TempDir()
	m.Systemctl = func(_ context.Context, args ...string) error {
		m.calls = append(m.calls, strings.Join(args, " "))
		return nil
	}
	for _, dir := range []string{systemdPath, bashDir, zshDir, "usr/local/bin"} {
		if err := os.MkdirAll(m.path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// all returns the paths of all files on the machine.
func (m *machine) all(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(m.Root, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			paths = append(paths, strings.TrimPrefix(path, m.Root+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

func newRequest(t *testing.T, dataDir string) Request {
	t.Helper()
	program := filepath.Join(t.TempDir(), "slipway")
	if err := os.WriteFile(program, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	root := &cobra.Command{Use: "slipway", Short: "A platform", Long: "A platform."}
	root.AddCommand(&cobra.Command{Use: "up", Short: "Start", Run: func(*cobra.Command, []string) {}})
	return Request{Program: program, DataDir: dataDir, Commands: map[string]*cobra.Command{"slipway": root}}
}

func TestInstallationIsRemovedCompletely(t *testing.T) {
	m := newMachine(t)
	request := newRequest(t, "/var/lib/slip way")
	// Simulate an earlier `slipway up --link`, which links the program.
	if err := os.Symlink(request.Program, m.path(programPath)); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second call replaces the files
		if _, err := m.Install(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{
		bashDir + "/slipway", unitPath(Service), clientPath, programPath, manDir + "/slipway-up.1", manDir + "/slipway.1", recordPath, zshDir + "/_slipway",
	}
	if got := m.all(t); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("files %q", got)
	}
	content, err := os.ReadFile(m.path(unitPath(Service)))
	if err != nil || !strings.Contains(string(content), "\nExecStart=/usr/local/bin/slipway run --data-dir \"/var/lib/slip way\"\n") {
		t.Errorf("the unit is %s, %v", content, err)
	}
	if content, err := os.ReadFile(m.path(clientPath)); err != nil || string(content) != "program" {
		t.Errorf("oc is %q, %v", content, err)
	}
	if installed, err := m.Installed("/var/lib/slip way/"); !installed || err != nil {
		t.Errorf("installed %t, %v", installed, err)
	}
	if removed, err := m.Remove(t.Context(), "/elsewhere"); removed || err != nil {
		t.Errorf("removal of the service of another data directory: %t, %v", removed, err)
	}
	if removed, err := m.Remove(t.Context(), "/var/lib/slip way"); !removed || err != nil {
		t.Errorf("removed %t, %v", removed, err)
	}
	if got := m.all(t); len(got) > 0 {
		t.Errorf("remaining files %q", got)
	}
	const calls = "daemon-reload, enable slipway, daemon-reload, enable slipway, disable --now slipway, daemon-reload"
	if got := strings.Join(m.calls, ", "); got != calls {
		t.Errorf("systemctl %s", got)
	}
}

func TestInstallationDoesNotReplaceOtherFiles(t *testing.T) {
	m := newMachine(t)
	if err := os.WriteFile(m.path(clientPath), []byte("another client"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), newRequest(t, "/a")); err == nil || !strings.Contains(err.Error(), "/usr/local/bin/oc exists") {
		t.Errorf("error %v", err)
	}
	if got := m.all(t); !slices.Equal(got, []string{clientPath}) {
		t.Errorf("files %q", got)
	}
}

func TestInstallationNeedsSystemd(t *testing.T) {
	m := newMachine(t)
	if err := os.RemoveAll(m.path(systemdPath)); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), newRequest(t, "/a")); err == nil || !strings.Contains(err.Error(), "systemd does not run") {
		t.Errorf("error %v", err)
	}
}

func TestSecondDataDirectoryCannotBeInstalled(t *testing.T) {
	m := newMachine(t)
	if _, err := m.Install(t.Context(), newRequest(t, "/a")); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Install(t.Context(), newRequest(t, "/b")); err == nil || !strings.Contains(err.Error(), "slipway uninstall --data-dir /a") {
		t.Errorf("error %v", err)
	}
}

func TestLoadBalancerHasSeparateService(t *testing.T) {
	m := newMachine(t)
	request := newRequest(t, "/a")
	request.LoadBalancer = []string{"--listen=*:443"}
	if _, err := m.Install(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(m.path(unitPath(LoadBalancer)))
	if err != nil || !strings.Contains(string(content), "\nExecStart=/usr/local/bin/slipway lb run --data-dir /a --listen=*:443\n") {
		t.Errorf("the unit is %s, %v", content, err)
	}
	if _, err := m.Install(t.Context(), newRequest(t, "/a")); err == nil || !strings.Contains(err.Error(), "slipway-lb is already installed") {
		t.Errorf("a host on the machine of the load balancer: %v", err)
	}
	if removed, err := m.Remove(t.Context(), "/a"); !removed || err != nil || len(m.all(t)) > 0 {
		t.Errorf("removed %t, %v, %q", removed, err, m.all(t))
	}
	if got := strings.Join(m.calls, ", "); got != "daemon-reload, enable slipway-lb, disable --now slipway-lb, daemon-reload" {
		t.Errorf("systemctl %s", got)
	}
}

func TestFailureOfSystemctlKeepsRecord(t *testing.T) {
	m := newMachine(t)
	broken := errors.New("no bus")
	m.Systemctl = func(context.Context, ...string) error { return broken }
	if _, err := m.Install(t.Context(), newRequest(t, "/a")); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if _, err := m.Remove(t.Context(), "/a"); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	m.Systemctl = func(context.Context, ...string) error { return nil }
	if removed, err := m.Remove(t.Context(), "/a"); !removed || err != nil || len(m.all(t)) > 0 {
		t.Errorf("removed %t, %v, %q", removed, err, m.all(t))
	}
}

// TestServiceHasWatchdog checks that the unit's watchdog timeout is one minute. It must be longer
// than the start of `slipway run`, which replaces the supervisor when the machine's address
// changes.
func TestServiceHasWatchdog(t *testing.T) {
	if !strings.Contains(unit, "\nWatchdogSec=60\n") {
		t.Errorf("the unit has no watchdog of a minute:\n%s", unit)
	}
}

// TestUnitIsValid checks the unit with systemd-analyze, if it is installed.
func TestUnitIsValid(t *testing.T) {
	program, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd is not installed; only the command line is checked")
	}
	request := newRequest(t, "/var/lib/slip%way")
	command, err := request.commandLine()
	if err != nil || command != "/usr/local/bin/slipway run --data-dir /var/lib/slip%%way" {
		t.Fatalf("command %s, %v", command, err)
	}
	if _, err := (Request{DataDir: "/a\"b"}).commandLine(); err == nil {
		t.Error("a path with a quote is accepted")
	}
	if program == "" {
		return
	}
	for name, text := range map[string]string{Service: unit, LoadBalancer: balancerUnit} {
		path := filepath.Join(t.TempDir(), name+".service")
		if err := os.WriteFile(path, []byte(strings.Replace(text, "COMMAND", "/bin/true", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		// Ignore problems with other units on this machine, which the output also contains.
		if out, err := exec.Command(program, "verify", "--man=no", path).CombinedOutput(); err != nil || strings.Contains(string(out), name+".service") {
			t.Errorf("systemd-analyze verify: %v: %s", err, out)
		}
	}
}
