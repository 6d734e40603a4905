package register

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// bench is a driver with its registrar. The test simulates the kubelet.
type bench struct {
	t         *testing.T
	registrar *Registrar
	component *componenttest.Component
	server    *fake.Server
}

func newBench(t *testing.T, options fake.Options) *bench {
	t.Helper()
	dir, err := os.MkdirTemp("", "csi") // short path for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	b := &bench{t: t, registrar: &Registrar{
		Endpoint: filepath.Join(dir, "csi.sock"), Dir: filepath.Join(dir, "plugins_registry"), Interval: 20 * time.Millisecond,
	}}
	b.serve(options)
	connection, err := driver.Dial(b.registrar.Endpoint, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	b.registrar.Driver = connection
	return b
}

// serve starts or replaces the driver.
func (b *bench) serve(options fake.Options) {
	b.t.Helper()
	if b.server != nil {
		b.server.Stop()
	}
	server, err := fake.New(options).Listen(b.registrar.Endpoint)
	if err != nil {
		b.t.Fatal(err)
	}
	b.server = server
	b.t.Cleanup(server.Stop)
}

func (b *bench) run() *bench {
	b.component = componenttest.Run(b.t, b.registrar.Run)
	return b
}

// sockets returns the sockets that the kubelet finds. The kubelet ignores hidden files.
func (b *bench) sockets() []string {
	existing, _ := filepath.Glob(filepath.Join(b.registrar.Dir, "[^.]*"))
	return existing
}

// kubelet waits for a socket and registers the driver, as the kubelet would.
func (b *bench) kubelet(response *registration.RegistrationStatus) *registration.PluginInfo {
	b.t.Helper()
	eventually.True(b.t, "a socket for kubelet", func() bool { return len(b.sockets()) == 1 })
	connection, err := grpc.NewClient("unix://"+b.sockets()[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer connection.Close()
	client := registration.NewRegistrationClient(connection)
	info, err := client.GetInfo(b.t.Context(), &registration.InfoRequest{})
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := client.NotifyRegistrationStatus(b.t.Context(), response); err != nil {
		b.t.Fatal(err)
	}
	return info
}

func (b *bench) waitRegistered() {
	b.t.Helper()
	eventually.True(b.t, "the driver is registered", func() bool { return b.registrar.State().Registered })
}

func accepted() *registration.RegistrationStatus {
	return &registration.RegistrationStatus{PluginRegistered: true}
}

func TestDriverIsRegistered(t *testing.T) {
	b := newBench(t, fake.Options{}).run()
	info := b.kubelet(accepted())
	if info.GetType() != registration.CSIPlugin || info.GetName() != fake.Name || info.GetEndpoint() != b.registrar.Endpoint {
		t.Errorf("kubelet gets %v", info)
	}
	b.waitRegistered()
	if got := filepath.Base(b.sockets()[0]); got != fake.Name+"-reg.sock" {
		t.Errorf("socket %q", got)
	}
	b.component.Stop()
	if remaining := b.sockets(); len(remaining) > 0 {
		t.Errorf("%v remain after the stop: kubelet would not unregister the driver", remaining)
	}
}

func TestDriverStartsLater(t *testing.T) {
	b := newBench(t, fake.Options{})
	b.server.Stop()
	b.run()
	b.serve(fake.Options{})
	b.kubelet(accepted())
	b.waitRegistered()
}

func TestStaleSocketIsReplaced(t *testing.T) {
	b := newBench(t, fake.Options{})
	if err := os.Mkdir(b.registrar.Dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"-reg.sock", "-reg-3.sock"} {
		listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(b.registrar.Dir, fake.Name+name), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		listener.SetUnlinkOnClose(false) // simulate kill -9
		listener.Close()
	}
	b.run()
	eventually.True(t, "only the live socket exists", func() bool { return len(b.sockets()) == 1 })
	b.kubelet(accepted())
	b.waitRegistered()
}

func TestRejectionIsRetriedAtAnotherPath(t *testing.T) {
	b := newBench(t, fake.Options{}).run()
	b.kubelet(&registration.RegistrationStatus{Error: "NodeGetInfo: no such device"})
	eventually.True(t, "the rejection is in the state", func() bool { return strings.Contains(b.registrar.State().Problem, "no such device") })
	eventually.True(t, "another path", func() bool {
		existing := b.sockets()
		return len(existing) == 1 && filepath.Base(existing[0]) == fake.Name+"-reg-2.sock"
	})
	b.kubelet(accepted())
	b.waitRegistered()
}

func TestChangedDriverIsRegisteredAgain(t *testing.T) {
	b := newBench(t, fake.Options{NodeID: "one"}).run()
	b.kubelet(accepted())
	b.waitRegistered()
	b.serve(fake.Options{NodeID: "two"})
	eventually.True(t, "the registration is withdrawn", func() bool { return !b.registrar.State().Registered })
	b.kubelet(accepted())
	b.waitRegistered()
}

func TestUnchangedDriverStaysRegistered(t *testing.T) {
	b := newBench(t, fake.Options{}).run()
	b.kubelet(accepted())
	b.waitRegistered()
	before, err := os.Stat(b.sockets()[0])
	if err != nil {
		t.Fatal(err)
	}
	driver := fake.New(fake.Options{})
	b.server.Stop()
	server, err := driver.Listen(b.registrar.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	eventually.True(t, "the new driver was queried twice", func() bool { return len(driver.Calls("NodeGetInfo")) >= 2 })
	after, err := os.Stat(b.sockets()[0])
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("the socket was replaced (%v): pods would lose the driver for a while", err)
	}
}

func TestRemovedSocketIsRecreated(t *testing.T) {
	b := newBench(t, fake.Options{}).run()
	b.kubelet(accepted())
	b.waitRegistered()
	if err := os.Remove(b.sockets()[0]); err != nil {
		t.Fatal(err)
	}
	b.kubelet(accepted())
	b.waitRegistered()
}

func TestKubeletRestart(t *testing.T) {
	b := newBench(t, fake.Options{}).run()
	b.kubelet(accepted())
	b.waitRegistered()
	b.kubelet(&registration.RegistrationStatus{Error: "starting"})
	eventually.True(t, "the second status takes effect", func() bool { return !b.registrar.State().Registered })
}

func TestInvalidNameIsReported(t *testing.T) {
	b := newBench(t, fake.Options{Name: "../../etc"}).run()
	eventually.True(t, "the name is rejected", func() bool { return strings.Contains(b.registrar.State().Problem, `"../../etc"`) })
	if existing := b.sockets(); len(existing) > 0 {
		t.Errorf("%v are offered to kubelet", existing)
	}
}

func TestNodeInfoErrorIsReportedByKubelet(t *testing.T) {
	b := newBench(t, fake.Options{Plan: fake.Always("NodeGetInfo", fake.Fault{Before: status.Error(codes.Internal, "no")})}).run()
	b.kubelet(accepted())
}

func TestTooLongPathIsReported(t *testing.T) {
	b := newBench(t, fake.Options{})
	b.registrar.Dir = filepath.Join(b.registrar.Dir, strings.Repeat("d", 70))
	b.run()
	eventually.True(t, "the reason is in the state", func() bool { return strings.Contains(b.registrar.State().Problem, "107 characters") })
}
