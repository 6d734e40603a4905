package flexvolumedrivers

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// installMounts installs the mounts script, and creates a source directory for the driver's
// volumes. The directory contains a page.
func installMounts(t *testing.T, c *kit.Cluster, name string) (d *driver, source string) {
	t.Helper()
	d = installScript(t, c, name, mounts)
	d.waitReady()
	source = filepath.Join(d.dir, "source")
	if err := os.Mkdir(source, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(source, "page"), []byte("from the source"), 0o644); err != nil {
		t.Fatal(err)
	}
	return d, source
}

// inline returns a function that makes a pod use an inline volume instead of a claim.
func inline(driver string, options map[string]string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{FlexVolume: &corev1.FlexVolumeSource{Driver: driver, Options: options}}
	}
}

// TestDriversMountEachKindOfVolume uses drivers written in shell, Python and Go, and each kind of
// volume that drivers create.
func TestDriversMountEachKindOfVolume(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	shell := install(t, c, "shell.example.com/disk")
	shell.run("ext4")
	shell.claim("xfs", large)
	shell.pod("xfs", nil)
	python, source := installMounts(t, c, "python.example.com/mounts")
	kinds := []string{"tmpfs", "overlay", "bind", "fuse"}
	for _, kind := range kinds {
		python.pod(kind, inline(python.name, map[string]string{"kind": kind, "source": source}))
	}
	golang := installGo(t, c, "go.example.com/directory")
	golang.pod("go", inline(golang.name, map[string]string{"base": golang.dir}))
	c.WaitPodRunning("go")
	shell.waitRunning("xfs")
	python.waitRunning(kinds...)

	if calls := shell.callsOf("waitforattach", "ext4"); len(calls) != 1 || !strings.HasPrefix(calls[0], "waitforattach  {") {
		t.Errorf("after attach returned no device, the calls were %q", calls)
	}
	for _, kind := range []string{"ext4", "xfs", "tmpfs", "overlay", "fuse"} {
		if table := c.Exec(kind, "cat", "/proc/mounts"); !strings.Contains(table, " /data "+kind+" ") {
			t.Errorf("pod %s has another file system:\n%s", kind, table)
		}
	}
	for _, kind := range []string{"overlay", "bind", "fuse"} {
		if page := c.Exec(kind, "cat", "/data/page"); page != "from the source" {
			t.Errorf("page of %s: %q", kind, page)
		}
	}
	if _, err := os.Stat(filepath.Join(golang.dir, "data", "starts")); err != nil {
		t.Error(err)
	}
	python.deletePods(kinds...)
	golang.deletePods("go")
	shell.remove("ext4", "xfs")
	python.waitReleased()
	golang.waitReleased()
}

// installGo builds and installs the Go example.
func installGo(t *testing.T, c *kit.Cluster, name string) *driver {
	t.Helper()
	program := filepath.Join(t.TempDir(), "driver")
	build := exec.Command("go", "build", "-o", program, "./examples/flexvolume-go")
	build.Dir = c.RepositoryFile()
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, output)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	d := installScript(t, c, name, string(content))
	d.waitReady()
	return d
}
