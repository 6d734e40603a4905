package main

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// kubelet is a fake kubelet that serves only the registration of plugins.
type kubelet struct {
	pluginapi.UnimplementedRegistrationServer
	registrations chan *pluginapi.RegisterRequest
}

func (k *kubelet) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.registrations <- request
	return &pluginapi.Empty{}, nil
}

// startKubelet serves the registration socket in a directory until the test ends.
func startKubelet(t *testing.T, directory string) *kubelet {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(directory, "kubelet.sock"))
	if err != nil {
		t.Fatal(err)
	}
	k := &kubelet{registrations: make(chan *pluginapi.RegisterRequest, 1)}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, k)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return k
}

// registration waits until the plugin registers, and returns the request.
func (k *kubelet) registration(t *testing.T) *pluginapi.RegisterRequest {
	t.Helper()
	select {
	case request := <-k.registrations:
		return request
	case <-time.After(time.Minute):
		t.Fatal("the plugin does not register")
		return nil
	}
}

func TestPluginRegistersAgainWhenKubeletRestarts(t *testing.T) {
	p := &plugin{resource: "example.com/card", pattern: "/dev/nul[l]", directory: t.TempDir()}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); p.run(ctx) }() // start the plugin before the kubelet
	t.Cleanup(func() { cancel(); <-done })
	k := startKubelet(t, p.directory)
	request := k.registration(t)
	if request.Version != "v1beta1" || request.ResourceName != "example.com/card" || request.Endpoint != "card.sock" {
		t.Errorf("registration is %v", request)
	}
	if err := os.Remove(filepath.Join(p.directory, request.Endpoint)); err != nil {
		t.Fatal(err)
	}
	k.registration(t)

	connection, err := grpc.NewClient("unix://"+filepath.Join(p.directory, request.Endpoint), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	stream, err := pluginapi.NewDevicePluginClient(connection).ListAndWatch(t.Context(), &pluginapi.Empty{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := stream.Recv()
	if err != nil || len(list.Devices) != 1 || list.Devices[0].ID != "null" || list.Devices[0].Health != pluginapi.Healthy {
		t.Errorf("devices are %v, error %v", list, err)
	}
}

func TestDevicesAreUnhealthyWithoutTheirFiles(t *testing.T) {
	directory := t.TempDir()
	link := filepath.Join(directory, "card0")
	if err := os.Symlink("/dev/null", link); err != nil {
		t.Fatal(err)
	}
	// card1 is not a device, because it is a regular file.
	if err := os.WriteFile(filepath.Join(directory, "card1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &plugin{pattern: filepath.Join(directory, "card*")}
	check := func(want ...string) {
		t.Helper()
		devices, err := p.devices()
		if err != nil || len(devices) != len(want) {
			t.Fatalf("devices are %v, error %v", devices, err)
		}
		for i, device := range devices {
			if got := device.ID + " " + device.Health; got != want[i] {
				t.Errorf("device is %s, want %s", got, want[i])
			}
		}
	}
	check("card0 Healthy", "card1 Unhealthy")
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	check("card0 Unhealthy", "card1 Unhealthy")
}

func TestContainersGetTheirDevices(t *testing.T) {
	p := &plugin{resource: "example.com/card", files: map[string]string{"card0": "/dev/cards/card0"}}
	request := func(id string) *pluginapi.AllocateRequest {
		return &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{id}}}}
	}
	response, err := p.Allocate(t.Context(), request("card0"))
	if err != nil {
		t.Fatal(err)
	}
	device := response.ContainerResponses[0].Devices[0]
	if device.HostPath != "/dev/cards/card0" || device.ContainerPath != "/dev/card0" || device.Permissions != "rw" {
		t.Errorf("device is %v", device)
	}
	if _, err := p.Allocate(t.Context(), request("card9")); status.Code(err) != codes.NotFound {
		t.Errorf("error for a device that does not exist: %v", err)
	}
}
