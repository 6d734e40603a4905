package localquota

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	volumetesting "k8s.io/kubernetes/pkg/volume/testing"

	"github.com/slipway-platform/slipway/internal/usermode"
)

func TestMain(m *testing.M) { usermode.Main(m) }

// mountXFS returns the mount point of an XFS file system.
func mountXFS(t *testing.T, options string) string {
	t.Helper()
	image, dir := filepath.Join(t.TempDir(), "image"), t.TempDir()
	for _, command := range [][]string{
		{"truncate", "-s", "320M", image}, {"mkfs.xfs", "-q", image}, {"mount", "-o", "loop" + options, image, dir}, {"chmod", "755", dir},
	} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, output)
		}
	}
	t.Cleanup(func() {
		if output, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v\n%s", err, output)
		}
	})
	return dir
}

// write writes a 6 MiB file in dir, as a user whose only supplementary group is group.
func write(dir string, group int64) error {
	command := exec.Command("setpriv", "--reuid=1000", "--regid=1000", fmt.Sprint("--groups=", group),
		"dd", "if=/dev/zero", "of=file", "bs=1M", "count=6", "status=none")
	command.Dir = dir // only root can open the directories above
	output, err := command.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

func TestVolumesOfGroupShareQuota(t *testing.T) {
	if !usermode.In(t, "loop") {
		return
	}
	root := mountXFS(t, ",gquota")
	if err := Check(root); err != nil {
		t.Fatal(err)
	}
	plugins := Limit(emptydir.ProbeVolumePlugins(), 10<<20)
	volumetesting.NewFakeKubeletVolumeHost(t, root, nil, plugins)
	create := func(pod types.UID, group *int64) string {
		object := &corev1.Pod{}
		object.UID = pod
		spec := volume.NewSpecFromVolume(&corev1.Volume{Name: "data", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		mounter, err := plugins[0].NewMounter(spec, object)
		if err != nil {
			t.Fatal(err)
		}
		if err := mounter.SetUp(volume.MounterArgs{FsGroup: group}); err != nil {
			t.Fatal(err)
		}
		return mounter.GetPath()
	}
	limited, other := int64(5000), int64(6000)
	if err := write(create("first", &limited), limited); err != nil {
		t.Errorf("write within the quota: %v", err)
	}
	if err := write(create("second", &limited), limited); err == nil || !strings.Contains(err.Error(), "Disk quota exceeded") {
		t.Errorf("write beyond the quota: %v", err)
	}
	if err := write(create("other", &other), other); err != nil {
		t.Errorf("write of another group: %v", err)
	}
	for _, pod := range []types.UID{"without", "group"} {
		if err := write(create(pod, nil), 7000); err != nil {
			t.Errorf("write without a group: %v", err)
		}
	}
}

func TestFileSystemsWithoutQuotasAreRejected(t *testing.T) {
	if !usermode.In(t, "loop") {
		return
	}
	for name, dir := range map[string]string{"XFS": mountXFS(t, ""), "memory": t.TempDir()} {
		if err := Check(dir); err == nil || !strings.Contains(err.Error(), "option gquota") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Check(filepath.Join(os.TempDir(), "missing")); err == nil {
		t.Error("a directory that does not exist has quotas")
	}
}
