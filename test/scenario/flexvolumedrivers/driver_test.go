//go:build flexvolumedrivers

package flexvolumedrivers

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func hungDriver(t *testing.T, c *kit.Cluster) {
	inInit := install(t, c, "hunginit.example.com/loop", `wait_at begin`, `[ $operation = init ] && exec sleep 1000; wait_at begin`)
	inMount := install(t, c, "hungmount.example.com/loop")
	inMount.block("mount", "begin")
	c.Apply(inInit.volume("init"))
	c.Apply(inMount.volume("mount"))
	inMount.waitBlocked("mount", "begin")

	works := install(t, c, "works.example.com/loop")
	c.Apply(works.volume("works"))
	c.WaitPodRunning("works")
	works.remove("works")

	inMount.unblock("mount", "begin")
	c.WaitPodRunning("mount")
	inInit.update()
	c.WaitPodRunning("init")
	inMount.remove("mount")
	inInit.remove("init")
}

func deadline(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "deadline.example.com/loop")
	d.block("mount", "begin")
	c.Apply(d.volume("late"))
	c.WaitFor("event of the deadline", func(ctx context.Context) error { return hasEvent(ctx, c, "FailedMount", "no answer within 2s") })
	d.unblock("mount", "begin")
	c.WaitPodRunning("late")
	node := c.Pod("late").Spec.NodeName
	want := fmt.Sprintf("slipway_flexvolume_operation_errors_total{driver=%q,kind=\"timeout\",operation=\"mount\"}", d.name)
	if page := c.OC("get", "--raw", "/api/v1/nodes/"+node+"/proxy/metrics"); !strings.Contains(page, want) {
		t.Errorf("kubelet's metrics do not have %s", want)
	}
	d.remove("late")
}

// leftBehind restarts the node under two volumes: of a driver whose mount leaves a process behind with its output open, as FUSE daemons do, and of one
// that is not installed any more.
func leftBehind(t *testing.T, c *kit.Cluster) {
	const mount, unmount = `mount "$(device_of "$image")" "$1" ||`, `umount "$1" || failure`
	fuse := install(t, c, "daemon.example.com/loop",
		mount, `{ sleep 100000 & echo $! >"$dir/daemon"; }; `+mount, unmount, `kill "$(cat "$dir/daemon")"; `+unmount)
	removed := install(t, c, "removed.example.com/loop")
	c.Apply(fuse.volume("daemon") + removed.volume("kept"))
	c.WaitPodRunning("daemon")
	c.WaitPodRunning("kept")
	if err := os.RemoveAll(removed.folder()); err != nil {
		t.Fatal(err)
	}
	restart(c, "node")
	c.WaitPodRunning("daemon")
	c.WaitPodRunning("kept")
	content, err := os.ReadFile(filepath.Join(fuse.dir, "daemon"))
	if err != nil {
		t.Fatal(err)
	}
	pid := strings.TrimSpace(string(content))
	if !lives(pid) {
		t.Errorf("the driver's daemon %s has ended", pid)
	}
	fuse.remove("daemon")
	c.WaitFor("end of the driver's daemon", func(context.Context) error {
		if lives(pid) {
			return fmt.Errorf("process %s lives", pid)
		}
		return nil
	})
	removed.remove("kept")
	for _, op := range []string{"unmount", "unmountdevice", "detach"} {
		if removed.count(op) == 0 {
			t.Errorf("%s of the removed driver was not called", op)
		}
	}
}

// lives says whether a process has not ended; one that nobody has waited for has.
func lives(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func manyPods(t *testing.T, c *kit.Cluster) {
	d := install(t, c, "many.example.com/loop")
	var names []string
	var manifest strings.Builder
	for i := range 20 {
		names = append(names, fmt.Sprintf("pod-%d", i))
		manifest.WriteString(d.volume(names[i]))
	}
	c.Apply(manifest.String())
	version := 0
	c.WaitFor("all pods", func(ctx context.Context) error {
		// Every version is another one, and the tests of the engine show that none is missed.
		version++
		d.update("# A FlexVolume driver", fmt.Sprintf("# Version %d of a FlexVolume driver", version))
		running := c.OC("get", "pods", "-o", `jsonpath={.items[?(@.status.phase=="Running")].metadata.name}`)
		if n := len(strings.Fields(running)); n != len(names) {
			return fmt.Errorf("%d of %d run", n, len(names))
		}
		return nil
	})
	if version < 2 {
		t.Errorf("the driver was updated %d times, want more", version)
	}
	for _, name := range names {
		if starts := c.Exec(name, "cat", "/data/starts"); strings.Count(starts, "\n") != 1 {
			t.Errorf("volume of %s has the data of others: %q", name, starts)
		}
	}
	if n := d.count("mount"); n != len(names) {
		t.Errorf("mount was called %d times for %d pods", n, len(names))
	}
	c.OC("delete", "pods", "--all", "--wait=false")
	d.waitReleased()
	d.remove(names...)
}
