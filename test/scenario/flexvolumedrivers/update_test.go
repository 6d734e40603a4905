package flexvolumedrivers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestManyPodsStartDuringDriverUpdate(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "many.example.com/disk")
	var names []string
	for i := range 12 {
		names = append(names, fmt.Sprintf("pod-%02d", i))
	}
	d.use(names...)
	version := 0
	update := func() {
		// Make every version different. The engine's unit tests check that the engine detects every
		// version.
		version++
		d.update("# A FlexVolume driver", fmt.Sprintf("# Version %d of a FlexVolume driver", version))
	}
	c.WaitFor("all pods", func(ctx context.Context) error {
		update()
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, pod := range pods.Items {
			if pod.Status.Phase != corev1.PodRunning {
				return fmt.Errorf("pod %s is %s", pod.Name, pod.Status.Phase)
			}
		}
		return nil
	})
	if version < 2 {
		t.Errorf("the driver was updated %d times, want more", version)
	}
	for _, name := range names {
		d.wasCalled("mount", name, 1)
		d.wasCalled("mountdevice", name, 1)
	}
	d.deletePods(names...)
	c.WaitFor("release of all volumes", func(context.Context) error {
		update()
		return d.attached("")
	})
	d.remove(names...)
}

// TestDriverUpdateRemovesAndAddsAttach updates the driver while a volume is attached. The volume
// must still be detached. The driver's current capabilities apply to new volumes.
func TestDriverUpdateRemovesAndAddsAttach(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "loses.example.com/disk")
	d.run("before")

	d.updateByCommand(`"attach":false`)
	d.fault("mount", "begin", "without", `[ -e "$image" ] || truncate -s 32M "$image"; make_device; blkid --probe "$device" >/dev/null || mkfs.ext4 -q "$device"`)
	d.run("without")
	d.deletePods("before")
	c.WaitFor("detachment of the volume", func(context.Context) error { return d.attached("before") })
	d.waitPodsGone("before")

	d.updateByCommand(`"attach":true`)
	d.run("after")
	d.remove("before", "without", "after")
	// A volume in use is also attached when its driver becomes attachable, because upstream cannot
	// distinguish it from a new volume. It is later detached like any other volume.
	for name, times := range map[string]int{"before": 1, "without": 0, "after": 1} {
		d.wasCalled("mountdevice", name, times)
		d.wasCalled("mount", name, 1)
		d.wasCalled("detach", name, len(d.callsOf("attach", name)))
	}
}

// updateByCommand updates the driver with `slipway flexvolume`. The command waits until both
// processes that call drivers use the new version.
func (d *driver) updateByCommand(capabilities string) {
	d.t.Helper()
	file := filepath.Join(d.t.TempDir(), "disk")
	text := strings.NewReplacer("@DIR@", d.dir, "@CAPABILITIES@", capabilities).Replace(disk)
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		d.t.Fatal(err)
	}
	d.c.MustSlipway("flexvolume", "install", file, "--driver", d.name)
}

// TestDriverIsRemovedWhileVolumesAreInUse removes the driver while a pod runs, and later installs
// it again. The pod must keep its volume.
func TestDriverIsRemovedWhileVolumesAreInUse(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "taken.example.com/disk")
	d.run("kept")
	d.uninstall()
	d.use("late")
	c.WaitFor("error of the removed driver", func(ctx context.Context) error {
		events, err := c.Client.CoreV1().Events(c.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, event := range events.Items {
			if strings.Contains(event.Message, "it has been removed; install it again") && strings.HasSuffix(event.InvolvedObject.Name, "late") {
				return nil
			}
		}
		return fmt.Errorf("none of %d events matches", len(events.Items))
	})
	if starts := c.Exec("kept", "cat", "/data/starts"); strings.Count(starts, "\n") != 1 {
		t.Errorf("the volume of the running pod contains %q", starts)
	}
	d.deletePods("kept")
	c.WaitFor("detachment by the removed driver", func(context.Context) error { return d.attached("kept") })
	d.update()
	d.waitRunning("late")
	d.remove("kept", "late")
}
