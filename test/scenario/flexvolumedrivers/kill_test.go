package flexvolumedrivers

import (
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// killNode blocks a driver of its own in each operation of the node, kills the node's process in the middle of all of them, and wants every
// volume to get where it was going.
func killNode(t *testing.T, c *kit.Cluster) {
	for _, where := range []string{"begin", "end"} {
		starting := map[string]*driver{"waitforattach": nil, "mountdevice": nil, "mount": nil}
		stopping := map[string]*driver{"unmount": nil, "unmountdevice": nil}
		for op := range stopping {
			d := install(t, c, op+"-"+where+".example.com/loop")
			c.Apply(d.volume(op))
			c.WaitPodRunning(op)
			d.block(op, where)
			c.OC("delete", "pod", op, "--wait=false")
			stopping[op] = d
		}
		growing := install(t, c, "expandfs-"+where+".example.com/loop")
		c.Apply(growing.large("expandfs"))
		c.WaitPodRunning("expandfs")
		growing.block("expandfs", where)
		grow(c, "expandfs", "400Mi")
		for op := range starting {
			d := install(t, c, op+"-"+where+".example.com/loop")
			d.block(op, where)
			c.Apply(d.volume(op))
			starting[op] = d
		}
		all := map[string]*driver{"expandfs": growing}
		for _, some := range []map[string]*driver{starting, stopping} {
			for op, d := range some {
				all[op] = d
			}
		}
		pokeUntil(c, "expandfs", func() bool { return growing.blocked("expandfs", where) })
		for op, d := range all {
			d.waitBlocked(op, where)
		}

		restart(c, "node")
		for op, d := range all {
			d.alone()
			d.unblock(op, where)
		}
		for op := range starting {
			c.WaitPodRunning(op)
			if starts := c.Exec(op, "cat", "/data/starts"); starts == "" {
				t.Errorf("volume %s has lost its data", op)
			}
		}
		waitCapacity(c, "expandfs", "400Mi")
		for op, d := range all {
			d.remove(op)
		}
	}
}

// killControlPlane does the same with the operations of the control plane.
func killControlPlane(t *testing.T, c *kit.Cluster) {
	for _, where := range []string{"begin", "end"} {
		attaching := install(t, c, "attach-"+where+".example.com/loop")
		detaching := install(t, c, "detach-"+where+".example.com/loop")
		growing := install(t, c, "expandvolume-"+where+".example.com/loop")
		c.Apply(detaching.volume("detach"))
		c.Apply(growing.large("expandvolume"))
		c.WaitPodRunning("detach")
		c.WaitPodRunning("expandvolume")
		all := map[string]*driver{"attach": attaching, "detach": detaching, "expandvolume": growing}
		for op, d := range all {
			d.block(op, where)
		}
		c.Apply(attaching.volume("attach"))
		c.OC("delete", "pod", "detach", "--wait=false")
		grow(c, "expandvolume", "400Mi")
		for op, d := range all {
			d.waitBlocked(op, where)
		}

		restart(c, "control-plane")
		for op, d := range all {
			d.alone()
			d.unblock(op, where)
		}
		c.WaitPodRunning("attach")
		detaching.waitReleased()
		waitCapacity(c, "expandvolume", "400Mi")
		for op, d := range all {
			d.remove(op)
		}
	}
}
