package flexvolume

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/internal/parttest"
)

// source writes a file that is to be installed.
func source(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const answering = "#!/bin/sh\necho '{\"status\":\"Success\",\"capabilities\":{\"attach\":false}}'\n"

func TestInstalledDriversAreTakenOverByARunningRegistry(t *testing.T) {
	t.Parallel()
	r := &Registry{Dir: filepath.Join(t.TempDir(), "plugins"), KeepDir: filepath.Join(t.TempDir(), "kept")}
	parttest.Run(t, r.Run)
	for _, content := range []string{answering, answering + "# second\n"} {
		installed, err := Install(r.Dir, "example.com/test", source(t, content))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(installed.Path)
		if err != nil || info.Mode() != 0o755 || read(t, installed.Path) != content {
			t.Fatalf("installed %v, %v", info, err)
		}
		eventually.True(t, "the version is ready", func() bool {
			e, known := r.Lookup("example.com/test")
			return known && e.State == StateReady && e.Version == installed.Version
		})
		eventually.Equal(t, "the kept version", func() string { return Kept(r.KeepDir)["example.com/test"] }, installed.Version)
		entries, err := os.ReadDir(filepath.Dir(installed.Path))
		if err != nil || len(entries) != 1 {
			t.Errorf("directory has %v, %v", entries, err)
		}
	}
	if left, err := Remove(r.Dir, "example.com/test"); err != nil || left != nil {
		t.Fatalf("left %q, %v", left, err)
	}
	eventually.True(t, "the driver is removed", hasState(r, "example.com/test", StateRemoved))
	if _, err := os.Stat(filepath.Join(r.Dir, "example.com~test")); !os.IsNotExist(err) {
		t.Errorf("directory of the removed driver: %v", err)
	}
}

func TestAnUpdateDoesNotDisturbARunningCall(t *testing.T) {
	dir, begun := t.TempDir(), filepath.Join(t.TempDir(), "begun")
	slow := "#!/bin/sh\ntouch " + begun + "\nwhile [ -e " + begun + " ]; do sleep 0.02; done\necho '{\"status\":\"Success\"}'\n"
	installed, err := Install(dir, "example.com/test", source(t, slow))
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := NewDriver("example.com/test", installed.Path, Settings{}).Attach(context.Background(), Volume{Name: "v"}, "n")
		ended <- err
	}()
	eventually.True(t, "the call has begun", func() bool { _, err := os.Stat(begun); return err == nil })
	if _, err := Install(dir, "example.com/test", source(t, answering)); err != nil {
		t.Error(err)
	}
	if err := os.Remove(begun); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWhatCannotRunHereIsNotInstalled(t *testing.T) {
	own, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(own)
	foreign[18], foreign[19] = 0xf3, 0 // e_machine: RISC-V
	for name, test := range map[string]struct{ content, want string }{
		"empty":              {"", "it is empty"},
		"text":               {"echo hello\n", "must begin with a line such as #!/bin/sh"},
		"data":               {"\x00\x01\x02\xff\xfe", "neither a Linux program nor a script"},
		"no interpreter":     {"#!\n", "names no interpreter"},
		"absent interpreter": {"#!/usr/bin/no-such-shell -e\n", "its interpreter /usr/bin/no-such-shell is not on this machine"},
		"absent with env":    {"#!/usr/bin/env -S no-such-python -u\n", "its interpreter no-such-python is not on this machine"},
		"Windows lines":      {"#!/bin/sh\r\necho\r\n", "sed -i"},
		"foreign program":    {string(foreign), "it is a program for EM_RISCV"},
		"damaged program":    {"\x7fELF\x02\x01\x01", "damaged program"},
	} {
		dir := filepath.Join(t.TempDir(), "plugins")
		if _, err := Install(dir, "example.com/test", source(t, test.content)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: something was made: %v", name, err)
		}
	}
	for name, content := range map[string]string{"program": string(own), "script with env": "#!/usr/bin/env -S sh -u\n"} {
		if err := CheckExecutable(source(t, content)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckExecutable(t.TempDir()); err == nil {
		t.Error("a directory is taken for a driver")
	}
}

func TestNamesThatKubernetesDoesNotTakeAreRefused(t *testing.T) {
	for name, good := range map[string]bool{
		"example.com/loop": true, "loop": true, "k8s/my_driver.v2": true,
		"": false, "a/b/c": false, "a~b": false, "/b": false, "a/": false, ".hidden": false, "a/.b": false, "a b/c": false, "../x": false, "a/b\n": false, "Ü/x": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Install(t.TempDir(), name, source(t, answering)); (err == nil) != good {
			t.Errorf("install %q: %v", name, err)
		}
	}
}

func TestAFileSystemWithoutExecutionIsRefused(t *testing.T) {
	dir := scratch(t)
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, "example.com/test", source(t, answering)); err == nil || !strings.Contains(err.Error(), "mounted noexec") {
		t.Error(err)
	}
}

func TestRemoveLeavesOtherFiles(t *testing.T) {
	dir := t.TempDir()
	installed, err := Install(dir, "loop", source(t, answering))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(installed.Path), "loop.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	left, err := Remove(dir, "loop")
	if diff := cmp.Diff([]string{log}, left); err != nil || diff != "" {
		t.Errorf("error %v, left (-want +got):\n%s", err, diff)
	}
	for name, do := range map[string]func() error{
		"remove": func() error { _, err := Remove(dir, "loop"); return err },
		"find":   func() error { _, err := Find(dir, "loop"); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), "it is not installed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestVolumesInUseAreCounted(t *testing.T) {
	root := t.TempDir()
	for _, dir := range []string{
		"pods/a/volumes/example.com~loop/v1", "pods/a/volumes/example.com~loop/v2", "pods/b/volumes/example.com~loop/v1",
		"pods/b/volumes/example.com~loop2/v1", "plugins/kubernetes.io/flexvolume/example.com/loop/mounts/v1",
	} {
		if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if got := UsageOf(root, "example.com/loop"); got != (Usage{Pods: 3, Devices: 1}) {
		t.Errorf("usage %+v", got)
	}
	if got := UsageOf(root, "example.com/other"); got != (Usage{}) {
		t.Errorf("usage %+v", got)
	}
}

func TestASurveyShowsWhatANodeWouldFind(t *testing.T) {
	dir := t.TempDir()
	write(t, executable(dir, "example.com/good"), answering)
	write(t, executable(dir, "example.com/bad"), "#!/bin/sh\necho no\n")
	write(t, executable(dir, "example.com/lacking"), "#!/bin/sh\necho '{\"status\":\"Not supported\"}'; exit 1\n")
	write(t, executable(dir, ".hidden"), answering)
	write(t, executable(dir, "a/b/c"), answering)
	entries, err := Survey(context.Background(), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, e := range entries {
		got[e.Name] = string(e.State)
		if e.Err != nil {
			got[e.Name] += ": " + e.Err.Error()
		}
	}
	for name, want := range map[string]string{
		"example.com/good": "ready", "example.com/bad": "it printed no JSON", "example.com/lacking": "not supported", "a/b/c": "rename it",
	} {
		if !strings.Contains(got[name], want) {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	if len(got) != 4 {
		t.Errorf("entries %v", got)
	}
	if none, err := Survey(context.Background(), filepath.Join(dir, "absent"), nil); err != nil || len(none) != 0 {
		t.Errorf("absent directory: %v, %v", none, err)
	}
	caps := DefaultCapabilities()
	if got := caps.String(); got != "attach,selinuxRelabel,fsGroup,requiresFSResize" {
		t.Errorf("capabilities %q", got)
	}
}
