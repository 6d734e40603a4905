package driver

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// server is a driver that returns the responses set by the test.
type server struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	version string
	create  func(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error)
}

func (*server) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (s *server) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "test.csi.example.org", VendorVersion: s.version}, nil
}

func (*server) GetPluginCapabilities(context.Context, *csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	service := &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}
	return &csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{Type: &csi.PluginCapability_Service_{Service: service}}}}, nil
}

func (*server) ControllerGetCapabilities(context.Context, *csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	rpc := &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME}
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{Type: &csi.ControllerServiceCapability_Rpc{Rpc: rpc}}}}, nil
}

func (s *server) CreateVolume(ctx context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	return s.create(ctx, r)
}

// serve runs a driver on a socket until stop is called.
func serve(t *testing.T, socket string, s *server) (stop func()) {
	t.Helper()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	g := grpc.NewServer()
	csi.RegisterIdentityServer(g, s)
	csi.RegisterControllerServer(g, s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = g.Serve(listener)
	}()
	stop = sync.OnceFunc(func() { g.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, socket string, options Options) *Driver {
	t.Helper()
	d, err := Dial("unix://"+socket, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestWaitForDriverAndItsRestart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	d := dial(t, socket, Options{Timeout: time.Second})
	descriptions := make(chan *Description)
	go func() {
		description, _ := d.WaitReady(t.Context())
		descriptions <- description
	}()
	stop := serve(t, socket, &server{version: "1"})
	first := <-descriptions
	if first.Name != "test.csi.example.org" || first.Version != "1" || !first.Can(csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME) {
		t.Fatalf("description %+v", first)
	}

	changed := make(chan struct{})
	go func() {
		d.WaitChanged(t.Context(), first)
		close(changed)
	}()
	stop()
	serve(t, socket, &server{version: "2"})
	<-changed
	if now, err := d.Describe(t.Context()); err != nil || now.Version != "2" {
		t.Errorf("description after the restart: %+v, %v", now, err)
	}
}

func TestCallWaitsForRestart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	d := dial(t, socket, Options{})
	response := func(context.Context, *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
		return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v"}}, nil
	}
	serve(t, socket, &server{create: response})()
	result := make(chan error)
	go func() {
		_, err := d.Controller().CreateVolume(t.Context(), &csi.CreateVolumeRequest{})
		result <- err
	}()
	serve(t, socket, &server{create: response})
	if err := <-result; err != nil {
		t.Error(err)
	}
}

func TestCallErrors(t *testing.T) {
	tests := map[codes.Code]struct{ final, certain bool }{
		codes.Canceled:         {false, false},
		codes.DeadlineExceeded: {false, false},
		codes.Unavailable:      {false, false},
		codes.Aborted:          {false, false},
		codes.Internal:         {true, false},
		codes.Unknown:          {true, false},
		codes.InvalidArgument:  {true, true},
		codes.NotFound:         {true, true},
		codes.OutOfRange:       {true, true},
	}
	for code, want := range tests {
		t.Run(code.String(), func(t *testing.T) {
			socket := filepath.Join(t.TempDir(), "csi.sock")
			serve(t, socket, &server{create: func(_ context.Context, r *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
				return nil, status.Errorf(code, "log in as %s with %s", r.Secrets["user"], r.Secrets["password"])
			}})
			var calls []Call
			d := dial(t, socket, Options{Observe: func(c Call) { calls = append(calls, c) }})
			if _, err := d.WaitReady(t.Context()); err != nil {
				t.Fatal(err)
			}
			secrets := map[string]string{"user": "alice", "password": "alice-in-wonderland", "empty": ""}
			_, err := d.Controller().CreateVolume(t.Context(), &csi.CreateVolumeRequest{Secrets: secrets})
			if got := (struct{ final, certain bool }{Final(err), HasNoEffect(err)}); got != want {
				t.Errorf("final, without effect: %v, want %v", got, want)
			}
			if text := err.Error(); strings.Contains(text, "alice") || strings.Contains(text, "wonderland") || !strings.Contains(text, "log in as") {
				t.Errorf("error %q", text)
			}
			if status.Code(err) != code {
				t.Errorf("code %s, want %s", status.Code(err), code)
			}
			last := calls[len(calls)-1]
			if last.Driver != "test.csi.example.org" || last.Method != "/csi.v1.Controller/CreateVolume" || last.Code != code {
				t.Errorf("observed %+v", last)
			}
		})
	}
}

func TestTimeoutIsNotFinal(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	hang := func(ctx context.Context, _ *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	serve(t, socket, &server{create: hang})
	d := dial(t, socket, Options{Timeout: 50 * time.Millisecond})
	_, err := d.Controller().CreateVolume(t.Context(), &csi.CreateVolumeRequest{})
	if CodeOf(err) != codes.DeadlineExceeded || Final(err) {
		t.Errorf("%v, final %v", err, Final(err))
	}
}

func TestNamesOfDrivers(t *testing.T) {
	for name, good := range map[string]bool{
		"hostpath.csi.k8s.io": true, "a": true, "A_b-c.D": true, strings.Repeat("x", 63): true,
		"": false, "../etc": false, "a/b": false, "-a": false, "a.": false, "a b": false, strings.Repeat("x", 64): false,
	} {
		if err := CheckName(name); (err == nil) != good {
			t.Errorf("name %q: %v", name, err)
		}
	}
	if got := SanitizeName("Com.Example_CSI-1"); got != "com-example-csi-1" {
		t.Errorf("sanitized to %q", got)
	}
}

func TestAddressMustBeUnixSocket(t *testing.T) {
	for _, address := range []string{"tcp://10.0.0.1:80", "csi.sock", "", "dns:///driver"} {
		if _, err := Dial(address, Options{}); err == nil {
			t.Errorf("address %q is accepted", address)
		}
	}
	for _, address := range []string{"unix:///run/csi.sock", "unix:/run/csi.sock", "/run/csi.sock"} {
		if path, err := socketPath(address); err != nil || path != "/run/csi.sock" {
			t.Errorf("address %q is the socket %q, %v", address, path, err)
		}
	}
}
