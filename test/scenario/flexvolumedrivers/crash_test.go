package flexvolumedrivers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// restart kills one of the host's processes and waits until its replacement is ready.
func restart(c *kit.Cluster, name string) {
	before := c.Status().PID(name)
	c.Kill(name)
	c.WaitRestart(name, before)
}

// interrupted describes a driver's operations that block, before or after their work, until the
// process that called them is killed.
type interrupted struct {
	*driver
	starting, stopping, growing []string // operations to interrupt, by the change of the volume
}

// each calls f twice for each operation, with the points at which the operation can block: "begin",
// before its work, and "end", after its work. The name passed to f is a volume's name, which
// consists of the operation and the point.
func (i interrupted) each(ops []string, f func(op, point, name string)) {
	for _, op := range ops {
		for _, point := range []string{"begin", "end"} {
			f(op, point, op+"-"+point)
		}
	}
}

func (i interrupted) names(ops []string) (names []string) {
	i.each(ops, func(_, _, name string) { names = append(names, name) })
	return names
}

func (i interrupted) all() []string { return slices.Concat(i.starting, i.stopping, i.growing) }

// begin starts every operation on two volumes. It waits until the operation blocks before its work
// on one volume and after its work on the other volume.
func (i interrupted) begin() {
	i.use(i.names(i.stopping)...)
	i.each(i.growing, func(_, _, name string) { i.claim(name, large); i.pod(name, nil) })
	i.waitRunning(append(i.names(i.stopping), i.names(i.growing)...)...)
	i.each(i.all(), i.holdOnce)
	i.use(i.names(i.starting)...)
	i.deletePods(i.names(i.stopping)...)
	i.each(i.growing, func(op, point, name string) {
		grow(i.c, name)
		pokeUntil(i.c, name, func() error { return i.waitingCall(op, point, name) })
	})
	i.each(i.all(), i.waitHeld)
}

// end checks that every volume reaches its final state. The interrupted calls block forever, so the
// restarted process must kill them.
func (i interrupted) end() {
	i.each(i.starting, func(_, _, name string) {
		i.waitRunning(name)
		if starts := i.c.Exec(name, "cat", "/data/starts"); strings.Count(starts, "\n") != 1 {
			i.t.Errorf("the volume of %s contains the starts %q", name, starts)
		}
	})
	i.each(i.stopping, func(_, _, name string) {
		i.c.WaitFor("release of "+name, func(context.Context) error {
			return errors.Join(i.leftMounts(i.volume(name), "disk-"+i.volume(name)), i.attached(name))
		})
	})
	i.each(i.growing, func(_, _, name string) { waitGrown(i.driver, name) })
	i.remove(i.names(i.all())...)
}

func TestNodeKilledDuringEachOperation(t *testing.T) {
	c := withClass(kit.Shared(t))
	i := interrupted{
		driver:   install(t, c, "nodekill.example.com/disk"),
		starting: []string{"waitforattach", "mountdevice", "mount"}, stopping: []string{"unmount", "unmountdevice"}, growing: []string{"expandfs"},
	}
	i.begin()
	restart(c, "node")
	i.end()
}

func TestControlPlaneKilledDuringEachOperation(t *testing.T) {
	c := withClass(kit.Shared(t))
	i := interrupted{
		driver:   install(t, c, "masterkill.example.com/disk"),
		starting: []string{"attach"}, stopping: []string{"detach"}, growing: []string{"expandvolume"},
	}
	i.begin()
	// When the controller restarts, no pod uses this volume and no status contains it.
	const deleted = "forgotten"
	i.holdOnce("attach", "end", deleted)
	i.use(deleted)
	i.waitHeld("attach", "end", deleted)
	i.deletePods(deleted)
	i.waitPodsGone(deleted)

	restart(c, "control-plane")
	c.WaitFor("detachment of the forgotten volume", func(context.Context) error { return i.attached(deleted) })
	i.end()
}

// TestNodeKilledWhileVolumesAreInUse restarts the node process while pods use volumes. The restart
// must not disrupt the pods.
func TestNodeKilledWhileVolumesAreInUse(t *testing.T) {
	c := withClass(kit.Shared(t))
	tests := []struct {
		name    string
		prepare func(*testing.T, *kit.Cluster) (*driver, func(*driver))
		check   func(*driver)
		driver  *driver
	}{
		{name: "a daemon of a driver survives", prepare: fuseDaemon},
		{name: "a removed driver releases its volumes", prepare: removedDriver},
		{name: "volumes that an in-tree plugin served work after the import", prepare: inTree},
		{name: "a volume grows after the restart", prepare: grownAfterwards},
		{name: "an interrupted init is repeated", prepare: interruptedInit},
	}
	for i := range tests {
		tests[i].driver, tests[i].check = tests[i].prepare(t, c)
	}
	restart(c, "node")
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := *test.driver
			d.t, d.c = t, c.For(t)
			test.check(&d)
		})
	}
}

// fuseDaemon creates a volume that a driver's daemon serves. The daemon must outlive the node
// process, and exits when the volume is unmounted.
func fuseDaemon(t *testing.T, c *kit.Cluster) (*driver, func(*driver)) {
	d, source := installMounts(t, c, "fuse.example.com/mounts")
	d.pod("fuse", inline(d.name, map[string]string{"kind": "fuse", "source": source}))
	d.waitRunning("fuse")
	before := pidsOf(t, source)
	return d, func(d *driver) {
		if page := d.c.Exec("fuse", "cat", "/data/page"); page != "from the source" {
			d.t.Errorf("page %q", page)
		}
		if after := pidsOf(d.t, source); after != before {
			d.t.Errorf("the daemon was %s before, and is %s now", before, after)
		}
		d.deletePods("fuse")
		d.waitReleased()
	}
}

// pidsOf returns the PIDs of the bindfs processes that serve the given directory.
func pidsOf(t testing.TB, dir string) string {
	t.Helper()
	output, err := exec.Command("pgrep", "-f", "bindfs "+dir).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(output))
}

// removedDriver creates a volume whose driver is removed before the node starts.
func removedDriver(t *testing.T, c *kit.Cluster) (*driver, func(*driver)) {
	d := install(t, c, "removed.example.com/disk")
	d.run("kept")
	d.uninstall()
	return d, func(d *driver) {
		d.waitRunning("kept")
		if starts := d.c.Exec("kept", "cat", "/data/starts"); strings.Count(starts, "\n") != 1 {
			d.t.Errorf("the pod was started again: %q", starts)
		}
		d.remove("kept")
		for _, op := range []string{"unmount", "unmountdevice", "detach"} {
			d.wasCalled(op, "kept", 1)
		}
	}
}

// inTree creates the state that remains if another cluster's kubelet exits while a pod uses the
// in-tree plugin: directories and mounts without a record. The new cluster must release them, and
// the volume must work after its objects are imported.
func inTree(t *testing.T, c *kit.Cluster) (*driver, func(*driver)) {
	d := install(t, c, "intree.example.com/disk")
	name := d.volume("old")
	options := fmt.Sprintf(`{"kubernetes.io/fsType":"ext4","kubernetes.io/pvOrVolumeName":%q,"kubernetes.io/readwrite":"rw"}`, name)
	device := c.Path("kubelet", "plugins", "kubernetes.io", "flexvolume", d.name, "mounts", name)
	pod := c.Path("kubelet", "pods", "8c1e3f0a-5d0b-4c43-9a31-0d8a5f1b2c3d", "volumes", d.escaped(), name)
	image := filepath.Join(d.dir, name+".img")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 32<<20)); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"waitforattach", "", options}, {"mountdevice", device, "", options}, {"mount", pod, options}} {
		// Retry, because the kubelet is still running and removes an unknown pod's directories
		// unless they contain mounts.
		c.WaitFor(args[0], func(context.Context) error {
			output, err := exec.Command(d.file(), args...).CombinedOutput()
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, output)
			}
			return err
		})
	}
	if err := os.WriteFile(filepath.Join(pod, "starts"), []byte("in the other cluster\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return d, func(d *driver) {
		d.c.WaitFor("release of the remains of the other cluster", func(context.Context) error {
			return errors.Join(d.leftMounts(d.name, d.escaped()), d.leftLoops())
		})
		d.run("old")
		if starts := d.c.Exec("old", "cat", "/data/starts"); !strings.HasPrefix(starts, "in the other cluster\n") || strings.Count(starts, "\n") != 2 {
			d.t.Errorf("the volume contains %q", starts)
		}
		d.remove("old")
	}
}

// grownAfterwards creates a volume that grows after the restart. The node must grow the file system
// itself, because the driver does not support expandfs.
func grownAfterwards(t *testing.T, c *kit.Cluster) (*driver, func(*driver)) {
	d := install(t, c, "grown.example.com/disk", "expandfs)", "no-expandfs)",
		`truncate -s "$3" "$image"`, `truncate -s "$3" "$image" && losetup --set-capacity "$(device_of)"`)
	d.claim("grown", large)
	d.pod("grown", nil)
	d.waitRunning("grown")
	return d, func(d *driver) {
		d.waitRunning("grown")
		grow(d.c, "grown")
		waitGrown(d, "grown")
		d.remove("grown")
	}
}

// interruptedInit installs a driver whose init blocks in the node process until that process is
// killed.
func interruptedInit(t *testing.T, c *kit.Cluster) (*driver, func(*driver)) {
	const inNode = `*"slipway node"*) mkdir "$dir/held" 2>/dev/null && exec sleep 1000 ;;`
	d := installScript(t, c, "init.example.com/disk", disk,
		"fault begin\n\tsuccess", `case $(tr '\0' ' ' <"/proc/$PPID/cmdline") in `+inNode+" esac\n\tsuccess")
	c.WaitFor("init in the node", func(context.Context) error {
		_, err := os.Stat(filepath.Join(d.dir, "held"))
		return err
	})
	return d, func(d *driver) {
		d.run("inited")
		d.remove("inited")
	}
}
