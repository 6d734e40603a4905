package flexvolume

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// deploy runs deploy.sh as in the driver's image, where only busybox's shell and programs are
// available.
func deploy(t *testing.T, image, host, vendor string) {
	t.Helper()
	programs := t.TempDir()
	for _, name := range []string{"sh", "cmp", "cp", "chmod", "mv", "mkdir", "sleep", "sync", "echo"} {
		if err := os.Symlink("/bin/busybox", filepath.Join(programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	script := exec.Command(filepath.Join(programs, "sh"), "deploy/deploy.sh")
	script.Env = []string{"PATH=" + programs, "SOURCE=" + image, "FLEXMNT=" + host, "VENDOR=" + vendor, "DRIVER=loop", "INTERVAL=0.1"}
	script.Stderr = os.Stderr
	script.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := script.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := script.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := script.Wait(); err != nil {
			t.Errorf("the script failed: %v", err)
		}
		_ = syscall.Kill(-script.Process.Pid, syscall.SIGKILL) // also kill the script's last sleep
	})
}

func TestImageInstallsDriverAndRestoresIt(t *testing.T) {
	driver, err := os.ReadFile("driver/loop")
	if err != nil {
		t.Fatal(err)
	}
	for vendor, directory := range map[string]string{"example.com": "example.com~loop", "": "loop"} {
		image, host := t.TempDir(), t.TempDir()
		if err := os.WriteFile(filepath.Join(image, "loop"), driver, 0o644); err != nil {
			t.Fatal(err)
		}
		deploy(t, image, host, vendor)
		name := flexvolume.UnescapeName(directory)
		var first flexvolume.Installation
		eventually.True(t, "the driver is installed", func() bool {
			first, err = flexvolume.Find(host, name)
			return err == nil
		})
		entries, err := flexvolume.Inspect(context.Background(), host, nil)
		if err != nil || len(entries) != 1 || entries[0].State != flexvolume.StateReady || entries[0].Name != name {
			t.Fatalf("drivers %+v, %v", entries, err)
		}
		if err := os.RemoveAll(filepath.Join(host, directory)); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "it is installed again", func() bool {
			installation, err := flexvolume.Find(host, name)
			return err == nil && installation.Version == first.Version
		})
		if err := os.WriteFile(filepath.Join(image, "loop"), append(driver, "# second\n"...), 0o644); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, "it is updated", func() bool {
			second, err := flexvolume.Find(host, name)
			return err == nil && second.Version != first.Version
		})
	}
}

func TestDaemonSetMatchesImage(t *testing.T) {
	content, err := os.ReadFile("deploy/daemonset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := strings.Split(string(content), "\n---\n")
	var set struct {
		APIVersion string
		Kind       string
		Spec       struct {
			Template struct {
				Spec struct {
					Containers []struct{ VolumeMounts []struct{ MountPath string } }
					Volumes    []struct{ HostPath struct{ Path string } }
				}
			}
		}
	}
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &set); err != nil {
		t.Fatal(err)
	}
	pod := set.Spec.Template.Spec
	if set.APIVersion != "apps/v1" || set.Kind != "DaemonSet" || pod.Containers[0].VolumeMounts[0].MountPath != "/flexmnt" ||
		pod.Volumes[0].HostPath.Path != "/usr/libexec/kubernetes/kubelet-plugins/volume/exec" {
		t.Errorf("%+v", set)
	}
	for file, want := range map[string]string{"deploy/Dockerfile": "deploy/deploy.sh /deploy.sh", "deploy/deploy.sh": "${FLEXMNT:-/flexmnt}"} {
		if content, err := os.ReadFile(file); err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%s has no %q: %v", file, want, err)
		}
	}
}
