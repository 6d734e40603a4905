package flexvolumedrivers

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// forth contains the operations on a volume when a pod starts, and back contains the operations
// when the pod is deleted.
var (
	forth = []string{"getvolumename", "attach", "waitforattach", "mountdevice", "mount"}
	back  = []string{"unmount", "unmountdevice", "detach"}
)

// through starts and deletes pods, each with a volume that is named after an operation. Before this
// operation works on the volume, the driver runs the given code.
func through(d *driver, code func(op string) string) {
	d.t.Helper()
	d.run(back...)
	for _, op := range append(forth, back...) {
		d.fault(op, "begin", op, code(op))
	}
	d.use(forth...)
	d.deletePods(back...)
}

func TestHungDriverDelaysNoOtherDriver(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	inInit := installScript(t, c, "hunginit.example.com/disk", disk, "fault begin\n\tsuccess", `: >"$dir/init.$PPID"; exec sleep 1000`)
	c.WaitFor("init in both processes", func(context.Context) error {
		// The error is always nil, because the pattern is valid.
		if holders, _ := filepath.Glob(filepath.Join(inInit.dir, "init.*")); len(holders) < 2 {
			return fmt.Errorf("init runs in %q", holders)
		}
		return nil
	})
	hung := install(t, c, "hung.example.com/disk")
	hung.run(back...)
	for _, op := range append(forth, back...) {
		hung.hold(op, "begin", op)
	}
	hung.use(forth...)
	hung.deletePods(back...)
	for _, op := range append(forth, back...) {
		hung.waitHeld(op, "begin", op)
	}

	works := install(t, c, "works.example.com/disk")
	works.run("works")
	works.remove("works")

	for _, op := range append(forth, back...) {
		hung.release(op, "begin", op)
	}
	hung.waitRunning(forth...)
	inInit.update()
	inInit.waitReady()
	inInit.run("mended")
	inInit.remove("mended")
	hung.remove(append(forth, back...)...)
}

// TestDriverIsKilledAtDeadline uses a driver that, once in each operation, ignores SIGTERM and
// starts a grandchild process that keeps the driver's output open.
func TestDriverIsKilledAtDeadline(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "deadline.example.com/disk")
	d.run(back...)
	for _, op := range append(forth, back...) {
		d.fault(op, "begin", op, `rm "$fault"; trap '' TERM; sleep 1000 & sleep 1000; sleep 1000`)
	}
	d.use(forth...)
	d.deletePods(back...)
	waitEvent(c, "FailedMount", "no response within 1s")
	d.waitRunning(forth...)
	d.remove(append(forth, back...)...)

	checkErrors(t, c, d, "timeout", "mountdevice", "mount", "unmount", "unmountdevice", "waitforattach")
}

// checkErrors checks that the kubelet's metrics contain an error of the given kind for each of the
// operations.
func checkErrors(t *testing.T, c *kit.Cluster, d *driver, kind string, ops ...string) {
	t.Helper()
	page := c.OC("get", "--raw", "/api/v1/nodes/"+c.Status().Nodes[0].Name+"/proxy/metrics")
	for _, op := range ops {
		if want := fmt.Sprintf("slipway_flexvolume_operation_errors_total{driver=%q,kind=%q,operation=%q} ", d.name, kind, op); !strings.Contains(page, want) {
			t.Errorf("kubelet's metrics do not have %s", want)
		}
	}
}

// TestEventNamesDriverWithInvalidOutput uses invalid responses: binary data, a response that is too
// long, a response with extra output, and a response without a status.
func TestEventNamesDriverWithInvalidOutput(t *testing.T) {
	t.Parallel()
	c := withClass(kit.Shared(t))
	d := install(t, c, "garbage.example.com/disk")
	faults := map[string]struct{ code, event, kind string }{
		"binary":   {`printf '\377\376\000\001'; exit 0`, "it printed no JSON", "no-answer"},
		"endless":  {`exec cat /dev/zero`, "it printed too much output", "too-long"},
		"noise":    {`echo 'mounting...'; echo '{"status":"Success"}'; echo 'done'; exit 0`, "it printed text before its response", "noise"},
		"nothing":  {`exit 0`, "it printed nothing", "no-answer"},
		"status":   {`echo '{"status":"OK"}'; exit 0`, `\"OK\"`, "status"},
		"disagree": {`echo '{"status":"Success"}'; exit 3`, "did not exit with 0", "disagreement"},
		"killed":   {`kill -9 $$`, "signal: killed", "no-answer"},
	}
	var names []string
	for name, fault := range faults {
		names = append(names, name)
		d.fault("mountdevice", "begin", name, fault.code)
		d.use(name)
	}
	for name, fault := range faults {
		waitEvent(c, "FailedMount", fault.event)
		d.release("mountdevice", "begin", name)
	}
	d.waitRunning(names...)
	d.remove(names...)
	for _, fault := range faults {
		checkErrors(t, c, d, fault.kind, "mountdevice")
	}
}
