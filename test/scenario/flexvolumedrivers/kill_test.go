//go:build flexvolumedrivers

package flexvolumedrivers

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// interrupted is a volume whose driver waits before ("begin") or after ("end") the work of one operation.
type interrupted struct {
	*driver
	op, where, name string
}

// interrupt installs a driver for each operation and each of both places.
func interrupt(t *testing.T, c *kit.Cluster, ops ...string) []interrupted {
	var all []interrupted
	for _, op := range ops {
		for _, where := range []string{"begin", "end"} {
			name := op + "-" + where
			all = append(all, interrupted{install(t, c, name+".example.com/loop"), op, where, name})
		}
	}
	return all
}

// killNode kills the node's process in the middle of each operation, all at once, and wants every volume to get where it was going.
func killNode(t *testing.T, c *kit.Cluster) {
	starting := interrupt(t, c, "waitforattach", "mountdevice", "mount")
	stopping := interrupt(t, c, "unmount", "unmountdevice")
	growing := interrupt(t, c, "expandfs")
	run(c, append(stopping, growing...))
	for _, v := range append(append(starting, stopping...), growing...) {
		v.block(v.op, v.where)
	}
	for _, v := range starting {
		c.Apply(v.volume(v.name))
	}
	c.OC(append([]string{"delete", "pods", "--wait=false"}, names(stopping)...)...)
	for _, v := range growing {
		grow(c, v.name, "400Mi")
		pokeUntil(c, v.name, func() bool { return v.blocked(v.op, v.where) })
	}
	kill(c, "node", starting, stopping, growing)
	for _, v := range starting {
		c.WaitPodRunning(v.name)
		if starts := c.Exec(v.name, "cat", "/data/starts"); starts == "" {
			t.Errorf("volume %s has lost its data", v.name)
		}
	}
	finish(c, starting, stopping, growing)
}

// killControlPlane does the same with the operations of the control plane.
func killControlPlane(t *testing.T, c *kit.Cluster) {
	starting := interrupt(t, c, "attach")
	stopping := interrupt(t, c, "detach")
	growing := interrupt(t, c, "expandvolume")
	run(c, append(stopping, growing...))
	for _, v := range append(append(starting, stopping...), growing...) {
		v.block(v.op, v.where)
	}
	for _, v := range starting {
		c.Apply(v.volume(v.name))
	}
	c.OC(append([]string{"delete", "pods", "--wait=false"}, names(stopping)...)...)
	for _, v := range growing {
		grow(c, v.name, "400Mi")
	}
	kill(c, "control-plane", starting, stopping, growing)
	for _, v := range starting {
		c.WaitPodRunning(v.name)
	}
	finish(c, starting, stopping, growing)
}

// run starts the pods of volumes that are to be in use.
func run(c *kit.Cluster, volumes []interrupted) {
	for _, v := range volumes {
		manifest := v.volume(v.name)
		if strings.HasPrefix(v.op, "expand") {
			manifest = v.large(v.name)
		}
		c.Apply(manifest)
	}
	for _, v := range volumes {
		c.WaitPodRunning(v.name)
	}
}

// kill kills a process when every driver waits in its operation, and lets them go on when it has been started again.
func kill(c *kit.Cluster, process string, groups ...[]interrupted) {
	for _, group := range groups {
		for _, v := range group {
			v.waitBlocked(v.op, v.where)
		}
	}
	restart(c, process)
	for _, group := range groups {
		for _, v := range group {
			v.alone()
			v.unblock(v.op, v.where)
		}
	}
}

// finish waits until what is to grow has grown and what is to be gone is gone, and removes everything.
func finish(c *kit.Cluster, starting, stopping, growing []interrupted) {
	for _, v := range growing {
		waitCapacity(c, v.name, "400Mi")
	}
	for _, v := range stopping {
		v.waitReleased()
	}
	c.OC(append([]string{"delete", "pods", "--wait=false"}, append(names(starting), names(growing)...)...)...)
	for _, group := range [][]interrupted{starting, stopping, growing} {
		for _, v := range group {
			v.remove(v.name)
		}
	}
}

func names(volumes []interrupted) []string {
	var list []string
	for _, v := range volumes {
		list = append(list, v.name)
	}
	return list
}
