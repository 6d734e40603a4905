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

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// source writes a file that a test installs.
func source(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const successScript = "#!/bin/sh\necho '{\"status\":\"Success\",\"capabilities\":{\"attach\":false}}'\n"

func TestRegistryFindsInstalledDrivers(t *testing.T) {
	t.Parallel()
	r := &Registry{Dir: filepath.Join(t.TempDir(), "plugins"), KeepDir: filepath.Join(t.TempDir(), "kept")}
	componenttest.Run(t, r.Run)
	for _, content := range []string{successScript, successScript + "# second\n"} {
		installed, err := Install(r.Dir, "example.com/test", source(t, content))
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(installed.Path)
		if err != nil || info.Mode() != 0o755 || read(t, installed.Path) != content {
			t.Fatalf("installed %v, %v", info, err)
		}
		eventually.True(t, "the version is ready", func() bool {
			e, ok := r.Lookup("example.com/test")
			return ok && e.State == StateReady && e.Version == installed.Version
		})
		eventually.Equal(t, "the last-good version", func() string { return LastGoodVersions(r.KeepDir)["example.com/test"] }, installed.Version)
		entries, err := os.ReadDir(filepath.Dir(installed.Path))
		if err != nil || len(entries) != 1 {
			t.Errorf("directory has %v, %v", entries, err)
		}
	}
	if remaining, err := Remove(r.Dir, "example.com/test"); err != nil || remaining != nil {
		t.Fatalf("left %q, %v", remaining, err)
	}
	eventually.True(t, "the driver is removed", hasState(r, "example.com/test", StateRemoved))
	if _, err := os.Stat(filepath.Join(r.Dir, "example.com~test")); !os.IsNotExist(err) {
		t.Errorf("directory of the removed driver: %v", err)
	}
}

func TestUpdateDoesNotInterruptRunningCall(t *testing.T) {
	dir, start := t.TempDir(), filepath.Join(t.TempDir(), "begun")
	slow := "#!/bin/sh\ntouch " + start + "\nwhile [ -e " + start + " ]; do sleep 0.02; done\necho '{\"status\":\"Success\"}'\n"
	installed, err := Install(dir, "example.com/test", source(t, slow))
	if err != nil {
		t.Fatal(err)
	}
	result := make(chan error)
	go func() {
		_, err := NewDriver("example.com/test", installed.Path, Settings{}).Attach(context.Background(), Volume{Name: "v"}, "n")
		result <- err
	}()
	eventually.True(t, "the call has started", func() bool { _, err := os.Stat(start); return err == nil })
	if _, err := Install(dir, "example.com/test", source(t, successScript)); err != nil {
		t.Error(err)
	}
	if err := os.Remove(start); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestInstallRejectsUnusableExecutable(t *testing.T) {
	self, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	foreign := slices.Clone(self)
	foreign[18], foreign[19] = 0xf3, 0 // e_machine = RISC-V
	for name, test := range map[string]struct{ content, want string }{
		"empty":                            {"", "it is empty"},
		"text":                             {"echo hello\n", "must begin with a line such as #!/bin/sh"},
		"data":                             {"\x00\x01\x02\xff\xfe", "neither a Linux program nor a script"},
		"no interpreter":                   {"#!\n", "names no interpreter"},
		"absent interpreter":               {"#!/usr/bin/no-such-shell -e\n", "its interpreter /usr/bin/no-such-shell is not on this machine"},
		"absent with env":                  {"#!/usr/bin/env -S no-such-python -u\n", "its interpreter no-such-python is not on this machine"},
		"Windows line endings":             {"#!/bin/sh\r\necho\r\n", "sed -i"},
		"program for another architecture": {string(foreign), "it is a program for EM_RISCV"},
		"corrupt program":                  {"\x7fELF\x02\x01\x01", "corrupt program"},
	} {
		dir := filepath.Join(t.TempDir(), "plugins")
		if _, err := Install(dir, "example.com/test", source(t, test.content)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: files were created: %v", name, err)
		}
	}
	for name, content := range map[string]string{"program": string(self), "script with env": "#!/usr/bin/env -S sh -u\n"} {
		if err := CheckExecutable(source(t, content)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := CheckExecutable(t.TempDir()); err == nil {
		t.Error("a directory is accepted as a driver")
	}
}

func TestInstallRejectsInvalidNames(t *testing.T) {
	for name, good := range map[string]bool{
		"example.com/loop": true, "loop": true, "k8s/my_driver.v2": true,
		"": false, "a/b/c": false, "a~b": false, "/b": false, "a/": false, ".hidden": false, "a/.b": false, "a b/c": false, "../x": false, "a/b\n": false, "Ü/x": false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
		if _, err := Install(t.TempDir(), name, source(t, successScript)); (err == nil) != good {
			t.Errorf("install %q: %v", name, err)
		}
	}
}

func TestInstallRejectsNoexecFileSystem(t *testing.T) {
	dir := scratch(t)
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, "example.com/test", source(t, successScript)); err == nil || !strings.Contains(err.Error(), "mounted noexec") {
		t.Error(err)
	}
}

func TestRemoveKeepsOtherFiles(t *testing.T) {
	dir := t.TempDir()
	installed, err := Install(dir, "loop", source(t, successScript))
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(filepath.Dir(installed.Path), "loop.log")
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	remaining, err := Remove(dir, "loop")
	if diff := cmp.Diff([]string{log}, remaining); err != nil || diff != "" {
		t.Errorf("error %v, remaining (-want +got):\n%s", err, diff)
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

func TestUsageCountsVolumes(t *testing.T) {
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

func TestInspect(t *testing.T) {
	dir := t.TempDir()
	write(t, executable(dir, "example.com/good"), successScript)
	write(t, executable(dir, "example.com/bad"), "#!/bin/sh\necho no\n")
	write(t, executable(dir, "example.com/lacking"), "#!/bin/sh\necho '{\"status\":\"Not supported\"}'; exit 1\n")
	write(t, executable(dir, ".hidden"), successScript)
	write(t, executable(dir, "a/b/c"), successScript)
	entries, err := Inspect(context.Background(), dir, nil)
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
	if entries2, err := Inspect(context.Background(), filepath.Join(dir, "absent"), nil); err != nil || len(entries2) != 0 {
		t.Errorf("absent directory: %v, %v", entries2, err)
	}
	caps := DefaultCapabilities()
	if got := caps.String(); got != "attach,selinuxRelabel,fsGroup,requiresFSResize" {
		t.Errorf("capabilities %q", got)
	}
}
