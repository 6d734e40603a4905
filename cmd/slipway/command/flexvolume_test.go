package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// flexvolumeHost runs `slipway flexvolume` for a host without a running supervisor.
type flexvolumeHost struct{ dir, plugins, kubelet, config string }

func newFlexvolumeHost(t *testing.T) flexvolumeHost {
	t.Helper()
	// The path of the host's socket must be short, so t.TempDir cannot be used.
	dir, err := os.MkdirTemp("", "flexvolume-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	h := flexvolumeHost{dir, filepath.Join(dir, "plugins"), filepath.Join(dir, "kubelet"), filepath.Join(dir, "node.yaml")}
	config := fmt.Sprintf("apiVersion: v1\nkind: NodeConfig\nvolumeDirectory: %s\nkubeletArguments: {volume-plugin-dir: [%q]}\n", h.kubelet, h.plugins)
	if err := os.WriteFile(h.config, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return h
}

func (h flexvolumeHost) run(args ...string) (string, error) {
	command := New()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(append([]string{"flexvolume", "--data-dir", filepath.Join(h.dir, "data"), "--config", h.config}, args...))
	err := command.Execute()
	return out.String(), err
}

// file writes a driver that responds to every call with response. It returns the driver's path.
func (h flexvolumeHost) file(t *testing.T, response string) string {
	t.Helper()
	path := filepath.Join(h.dir, "loop")
	if err := os.WriteFile(path, []byte("#!/bin/sh\necho '"+response+"'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDriversAreManagedWithoutCluster(t *testing.T) {
	h := newFlexvolumeHost(t)
	file := h.file(t, `{"status":"Success","volumeName":"x"}`)
	steps := []struct {
		args       []string
		want, fail string
	}{
		{[]string{"list"}, "DRIVER", ""},
		{[]string{"install", file}, "", `"driver" not set`},
		{[]string{"install", file, "--driver", "a/b/c"}, "", "write it as vendor/name"},
		{[]string{"install", file, "--driver", "example.com/loop"}, "slipway is not running", ""},
		{[]string{"list"}, "example.com/loop  ready", ""},
		{[]string{"list", "-o", "json"}, `"requiresFSResize": true`, ""},
		{[]string{"list", "-o", "yaml"}, "", `unknown output format "yaml"`},
		{[]string{"call", "example.com/loop", "getvolumename", "--volume", "it's"}, `getvolumename '{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"it'\''s",`, ""},
		{[]string{"call", "example.com/loop", "getvolumename", "{}"}, `taken as  success, volume name "x"`, ""},
		{[]string{"call", "example.com/loop", "mount", "/m", `{"kubernetes.io/secret/k":"cGFzc3dvcmQ="}`}, `mount /m '{"kubernetes.io/secret/k":"[secret]="}'`, ""},
		{[]string{"call", "example.com/absent", "init"}, "", "it is not installed"},
		{[]string{"check", "example.com/absent"}, "", "it is not installed"},
		{[]string{"check", "example.com/loop", "--driver", "a/b"}, "", "the file does not exist; to check an installed driver, omit --driver"},
		{[]string{"check", file, "--size", "big"}, "", `parse --size "big"`},
		{[]string{"remove", "example.com/loop"}, "removed example.com/loop", ""},
		{[]string{"remove", "example.com/loop"}, "", "it is not installed"},
	}
	for _, step := range steps {
		out, err := h.run(step.args...)
		if step.fail == "" && err != nil || step.fail != "" && (err == nil || !strings.Contains(err.Error(), step.fail)) {
			t.Errorf("%q: error %v, want %q", step.args, err, step.fail)
		}
		if !strings.Contains(out, step.want) {
			t.Errorf("%q printed %q, want %q", step.args, out, step.want)
		}
	}
}

func TestDriverWhoseInitFailsIsNotInstalled(t *testing.T) {
	h := newFlexvolumeHost(t)
	if _, err := h.run("install", h.file(t, `{"status":"Success"}`), "--driver", "example.com/loop"); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(h.plugins, "example.com~loop", "loop")
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	failing := h.file(t, `{"status":"Failure","message":"no license"}`)
	if _, err := h.run("install", failing, "--driver", "example.com/loop"); err == nil || !strings.Contains(err.Error(), "no license") ||
		!strings.Contains(err.Error(), "nothing was installed") {
		t.Errorf("error %v", err)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the earlier version was replaced: %v", err)
	}
	if entries, err := os.ReadDir(h.plugins); err != nil || len(entries) != 1 {
		t.Errorf("the trial left %v, %v", entries, err)
	}
	if _, err := h.run("install", failing, "--driver", "example.com/loop", "--force"); err != nil {
		t.Errorf("with --force: %v", err)
	}
}

func TestInstallAndListHaveSameNameRule(t *testing.T) {
	h := newFlexvolumeHost(t)
	file := h.file(t, `{"status":"Success"}`)
	if _, err := h.run("install", file, "--driver", "Example.com/loop"); err == nil || !strings.Contains(err.Error(), "lowercase") {
		t.Errorf("install: %v", err)
	}
	if err := os.MkdirAll(filepath.Join(h.plugins, "Example.com~loop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(file, filepath.Join(h.plugins, "Example.com~loop", "loop")); err != nil {
		t.Fatal(err)
	}
	if out, err := h.run("list"); err != nil || !strings.Contains(out, "failed") || !strings.Contains(out, "rename the directory Example.com~loop") {
		t.Errorf("list: %v\n%s", err, out)
	}
	if _, err := h.run("remove", "Example.com/loop"); err != nil {
		t.Errorf("remove: %v", err)
	}
}

func TestListShowsLastFailedCall(t *testing.T) {
	h := newFlexvolumeHost(t)
	if _, err := h.run("install", h.file(t, `{"status":"Success"}`), "--driver", "example.com/loop"); err != nil {
		t.Fatal(err)
	}
	const failing = "#!/bin/sh\n[ $1 = init ] && exec echo '{\"status\":\"Success\"}'\necho '{\"status\":\"Failure\",\"message\":\"no disk for '$1'\"}'\n"
	if err := os.WriteFile(filepath.Join(h.plugins, "example.com~loop", "loop"), []byte(failing), 0o755); err != nil {
		t.Fatal(err)
	}
	call := func(process string, call func(*flexvolume.Driver) error) {
		t.Helper()
		t.Run(process, func(t *testing.T) {
			r := &flexvolume.Registry{Dir: h.plugins, KeepDir: filepath.Join(h.dir, "data", "flexvolume", process)}
			componenttest.Run(t, r.Run)
			driver, err := r.Ready(context.Background(), "example.com/loop")
			if err != nil {
				t.Fatal(err)
			}
			if err := call(driver); flexvolume.KindOf(err) != flexvolume.KindFailure {
				t.Fatalf("error %v", err)
			}
		})
	}
	if out, err := h.run("list"); err != nil || strings.Contains(out, "failed call") {
		t.Errorf("before: %v\n%s", err, out)
	}
	call(host.Node, func(d *flexvolume.Driver) error { return d.Unmount(context.Background(), "/m") })
	call(host.ControlPlane, func(d *flexvolume.Driver) error { return d.Detach(context.Background(), "v", "n") })
	last, err := flexvolume.LastFailure(filepath.Join(h.dir, "data", "flexvolume", host.ControlPlane), "example.com/loop")
	if err != nil {
		t.Fatal(err)
	}
	out, err := h.run("list")
	want := "\nexample.com/loop: last failed call, at " + last.Time.Local().Format(time.DateTime) +
		`: run detach of FlexVolume driver "example.com/loop": it reports Failure: "no disk for detach"`
	if err != nil || !strings.Contains(out, want) {
		t.Errorf("%v, printed\n%swant%s", err, out, want)
	}
	if out, err := h.run("list", "-o", "json"); err != nil || !strings.Contains(out, `"operation": "detach"`) {
		t.Errorf("%v, printed\n%s", err, out)
	}
}

func TestFailureThatMakesDriverUnusableIsPrintedOnce(t *testing.T) {
	var out strings.Builder
	message := "run init of FlexVolume driver \"example.com/loop\": it printed nothing"
	if err := printDrivers(&out, []driverStatus{{Driver: "example.com/loop", Error: message, LastFailure: &flexvolume.Failure{Message: message}}}); err != nil {
		t.Fatal(err)
	}
	if count := strings.Count(out.String(), message); count != 1 {
		t.Errorf("the message is printed %d times:\n%s", count, out.String())
	}
}

func TestReadingVerbsCreateNoFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{{"config", "view"}, {"status"}, {"flexvolume", "list"}} {
		command := New()
		command.SetOut(io.Discard)
		command.SetErr(io.Discard)
		command.SetArgs(append(args, "--data-dir", dir))
		_ = command.Execute() // `status` fails because the host is not running
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Fatalf("%q created the data directory: %v", args, err)
		}
	}
}

func TestDriverInUseIsRemovedOnlyWithForce(t *testing.T) {
	h := newFlexvolumeHost(t)
	if _, err := h.run("install", h.file(t, `{"status":"Success"}`), "--driver", "example.com/loop"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.kubelet, "pods", "uid", "volumes", "example.com~loop", "data"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := h.run("remove", "example.com/loop"); err == nil || !strings.Contains(err.Error(), "use 1 of its volumes, and 0 of its devices") {
		t.Errorf("without force: %v", err)
	}
	if _, err := os.Stat(filepath.Join(h.plugins, "example.com~loop", "loop")); err != nil {
		t.Error(err)
	}
	if _, err := h.run("remove", "example.com/loop", "--force"); err != nil {
		t.Errorf("with force: %v", err)
	}
}

func TestFailedCallReturnsError(t *testing.T) {
	h := newFlexvolumeHost(t)
	for response, want := range map[string]string{
		`{"status":"Failure","message":"no"}`: `taken as  error: run unmount of FlexVolume driver "example.com/loop": it reports Failure: "no"`,
		`{"status":"Not supported"}`:          "taken as  not supported",
		`nothing`:                             "taken as  error: ",
	} {
		if _, err := h.run("install", h.file(t, response), "--driver", "example.com/loop", "--force"); err != nil {
			t.Fatal(err)
		}
		if out, err := h.run("call", "example.com/loop", "unmount", "/m"); !errors.Is(err, errCallFailed) || !strings.Contains(out, want) {
			t.Errorf("%s: %v, %s", response, err, out)
		}
	}
}

func TestCheckFailsFromResultInFlag(t *testing.T) {
	h := newFlexvolumeHost(t)
	// The driver reports success for an unsupported operation. The check reports this as a risk.
	risky := h.file(t, `{"status":"Success","capabilities":{"attach":false}}`)
	for _, test := range []struct {
		failOn string
		fails  bool
	}{{"wrong", false}, {"risk", true}, {"never", false}} {
		out, err := h.run("check", risky, "--only", "lacks", "--fail-on", test.failOn, "--option", "a=b,c=d")
		if errors.Is(err, errNotConformant) != test.fails || !strings.Contains(out, "check.example.com/loop works, with these risks (lacks-unknown") {
			t.Errorf("--fail-on %s: %v, %s", test.failOn, err, out)
		}
	}
	for _, args := range [][]string{{"--fail-on", "all"}, {"--option", "a"}} {
		if _, err := h.run(append([]string{"check", risky}, args...)...); err == nil || !strings.Contains(err.Error(), args[0]) {
			t.Errorf("%q: %v", args, err)
		}
	}
}

func TestCheckReturnsErrorForFinding(t *testing.T) {
	h := newFlexvolumeHost(t)
	report := filepath.Join(h.dir, "report.xml")
	out, err := h.run("check", h.file(t, `{"status":"Success","capabilities":{"attach":false}}`), "--only", "lacks,sequence", "--junit", report)
	if !errors.Is(err, errNotConformant) || !strings.Contains(out, "check.example.com/loop does not work (mount") || !strings.Contains(out, "lacks-unknown") {
		t.Errorf("%v, %s", err, out)
	}
	if text, err := os.ReadFile(report); err != nil || !strings.Contains(string(text), `<testcase classname="check.example.com/loop" name="lacks-unknown">`) {
		t.Errorf("report %s, %v", text, err)
	}
}

func TestMissingJSONObjectIsAdded(t *testing.T) {
	volume := volumeFlags{name: "v"}
	const input = `{"kubernetes.io/fsType":"","kubernetes.io/pvOrVolumeName":"v","kubernetes.io/readwrite":"rw"}`
	for _, test := range []struct {
		op         flexvolume.Operation
		args, want []string
	}{
		{flexvolume.OpInit, nil, nil},
		{flexvolume.OpGetVolumeName, nil, []string{input}},
		{flexvolume.OpAttach, []string{"n"}, []string{input, "n"}},
		{flexvolume.OpIsAttached, []string{"n"}, []string{input, "n"}},
		{flexvolume.OpWaitForAttach, []string{""}, []string{"", input}},
		{flexvolume.OpMountDevice, []string{"/d", "/dev/x"}, []string{"/d", "/dev/x", input}},
		{flexvolume.OpExpandVolume, []string{"/d", "2", "1"}, []string{input, "/d", "2", "1"}},
		{flexvolume.OpExpandFS, []string{"/dev/x", "/d", "2", "1"}, []string{input, "/dev/x", "/d", "2", "1"}},
		{flexvolume.OpUnmount, []string{"/d"}, []string{"/d"}},
		{flexvolume.OpAttach, []string{"{}", "n"}, []string{"{}", "n"}},
		{flexvolume.OpAttach, []string{"a", "b", "c"}, []string{"a", "b", "c"}},
		{"later", []string{"x"}, []string{"x"}},
	} {
		got, err := volume.complete(test.op, test.args)
		if diff := cmp.Diff(test.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", test.op, err, diff)
		}
	}
}

func TestSlowestOperationHasLongestMean(t *testing.T) {
	latencies := map[string]volumeplugin.Latency{"mount": {MeanSeconds: 0.2}, "init": {MeanSeconds: 0.01}}
	if got := slowestOperation(latencies); got != "mount 200ms" {
		t.Errorf("got %q", got)
	}
	if got := slowestOperation(nil); got != "" {
		t.Errorf("got %q without calls", got)
	}
}
