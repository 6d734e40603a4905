package hosts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/godbus/dbus/v5/prop"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

// busConfiguration is the configuration of a D-Bus bus that gives all clients access.
const busConfiguration = `<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN" "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig>
  <type>system</type>
  <listen>unix:path=%s</listen>
  <auth>EXTERNAL</auth>
  <policy context="default"><allow user="*"/><allow own="*"/><allow send_type="method_call"/><allow send_type="signal"/>
    <allow send_requested_reply="true" send_type="method_return"/><allow send_requested_reply="true" send_type="error"/>
    <allow receive_type="method_call"/><allow receive_type="signal"/><allow receive_type="method_return"/><allow receive_type="error"/></policy>
</busconfig>
`

const (
	login1     = "org.freedesktop.login1"
	login1Path = dbus.ObjectPath("/org/freedesktop/login1")
	manager    = login1 + ".Manager"
)

// logind implements the part of systemd-logind that announces a machine's shutdown, because the
// test machine does not run systemd-logind and must not shut down.
type logind struct {
	bus *dbus.Conn
	// released is closed when the kubelet stops delaying the shutdown. It is nil until the kubelet
	// first delays the shutdown.
	released atomic.Pointer[chan struct{}]
}

// Inhibit is the D-Bus method that the kubelet calls to delay a shutdown. The delay ends when the
// kubelet closes the returned file.
func (l *logind) Inhibit(_, _, _, _ string) (dbus.UnixFD, *dbus.Error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	released := make(chan struct{})
	l.released.Store(&released)
	go func() {
		_, _ = reader.Read(make([]byte, 1)) // returns when the last process closes the write end
		reader.Close()
		close(released)
	}()
	// Close the file later, because the bus sends a copy of the file descriptor only after Inhibit
	// returns.
	time.AfterFunc(time.Second, func() { writer.Close() })
	return dbus.UnixFD(writer.Fd()), nil
}

// newLogind starts a system bus with logind, for the hosts that the test starts afterwards.
func newLogind(t *testing.T) *logind {
	t.Helper()
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "bus"), filepath.Join(dir, "bus.conf")
	if err := os.WriteFile(file, fmt.Appendf(nil, busConfiguration, socket), 0o600); err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command("dbus-daemon", "--config-file="+file, "--nofork", "--nopidfile")
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = daemon.Process.Kill()
		_ = daemon.Wait()
	})
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path="+socket)
	l := &logind{}
	eventually.True(t, "the bus", func() (ok bool) {
		var err error
		l.bus, err = dbus.ConnectSystemBus()
		return err == nil
	})
	t.Cleanup(func() { l.bus.Close() })
	longest := map[string]map[string]*prop.Prop{manager: {"InhibitDelayMaxUSec": {Value: uint64(time.Minute / time.Microsecond)}}}
	_, propertyErr := prop.Export(l.bus, login1Path, longest)
	reply, nameErr := l.bus.RequestName(login1, dbus.NameFlagDoNotQueue)
	if err := errors.Join(propertyErr, nameErr, l.bus.Export(l, login1Path, manager)); err != nil || reply != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(reply, err)
	}
	return l
}

// TestPodsEndBeforeTheMachineShutsDown announces a shutdown as systemd-logind does. A pod must
// terminate gracefully before the kubelet lets the shutdown continue.
func TestPodsEndBeforeTheMachineShutsDown(t *testing.T) {
	c, _ := kit.SharedHost(t)
	l := newLogind(t)
	host := c.Join("rebooting", kit.Options{Node: "slipway: {shutdown: {period: 20s, critical: 5s}}"})
	waitNodeReady(c, "rebooting")
	c.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: orderly}, spec: {nodeName: rebooting, terminationGracePeriodSeconds: 15, volumes: [{name: out, hostPath: {path: "` + host.DataDir + `"}}],
		containers: [{name: orderly, image: ` + kit.ToolsImage + `, securityContext: {privileged: true}, volumeMounts: [{name: out, mountPath: /out}],
			command: [sh, -c, "trap 'echo orderly >/out/ended; exit' TERM; while :; do sleep 0.1; done"]}]}}`)
	c.WaitPodRunning("orderly")
	eventually.True(t, "the kubelet to delay a shutdown", func() bool { return l.released.Load() != nil })

	released := *l.released.Load()
	if err := l.bus.Emit(login1Path, manager+".PrepareForShutdown", true); err != nil {
		t.Fatal(err)
	}
	c.WaitFor("end of the delay", func(context.Context) error {
		select {
		case <-released:
			return nil
		default:
			return errors.New("the kubelet to delay the shutdown")
		}
	})
	if text, err := os.ReadFile(host.Path("ended")); err != nil || string(text) != "orderly\n" {
		t.Errorf("the machine continues to shut down before the pod has ended: %q, %v", text, err)
	}
	c.WaitFor("end of the pod", func(context.Context) error {
		if pod := c.Pod("orderly"); pod.Status.Phase != corev1.PodSucceeded {
			return fmt.Errorf("the pod is %s: %s", pod.Status.Phase, pod.Status.Message)
		}
		return nil
	})
	if nodes := c.OC("get", "node", "rebooting"); !strings.Contains(nodes, " NotReady") {
		t.Errorf("the node still accepts new pods:\n%s", nodes)
	}
	// Cancel the shutdown.
	if err := l.bus.Emit(login1Path, manager+".PrepareForShutdown", false); err != nil {
		t.Fatal(err)
	}
	waitNodeReady(c, "rebooting")
}
