package fake

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

func TestFaults(t *testing.T) {
	failure := status.Error(codes.Unavailable, "injected")
	tests := []struct {
		name    string
		fault   Fault
		want    codes.Code
		created int // number of volumes after the call
	}{
		{"none", Fault{}, codes.OK, 1},
		{"delay", Fault{Delay: time.Millisecond}, codes.OK, 1},
		{"delay beyond the caller's deadline", Fault{Delay: time.Hour}, codes.DeadlineExceeded, 0},
		{"before", Fault{Before: failure}, codes.Unavailable, 0},
		{"after", Fault{After: failure}, codes.Unavailable, 1},
		{"hang", Fault{Hang: true}, codes.DeadlineExceeded, 1},
		{"crash", Fault{Crash: true}, codes.Unavailable, 1},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := New(Options{Plan: Times(1, "CreateVolume", tt.fault)})
			client := dial(t, d)
			_, err := create(client, "data")
			if got := status.Code(err); got != tt.want {
				t.Errorf("the call ended with %v, want %v", err, tt.want)
			}
			if got := len(d.Volumes()); got != tt.created {
				t.Errorf("%d volumes, want %d", got, tt.created)
			}
			if _, err := create(client, "data"); err != nil {
				t.Errorf("the second call: %v", err)
			}
			if got := len(d.Volumes()); got != 1 {
				t.Errorf("%d volumes after the second call, want 1", got)
			}
		})
	}
}

func TestFalseResponseIsSent(t *testing.T) {
	d := New(Options{Plan: Always("CreateVolume", Fault{Lie: func(response proto.Message) {
		response.(*csi.CreateVolumeResponse).Volume.CapacityBytes = 7
	}})})
	response, err := create(dial(t, d), "data")
	if err != nil || response.GetVolume().GetCapacityBytes() != 7 {
		t.Errorf("response %v, %v; want 7 bytes", response, err)
	}
}

func TestDisabledCapability(t *testing.T) {
	d := New(Options{LacksController: []csi.ControllerServiceCapability_RPC_Type{csi.ControllerServiceCapability_RPC_EXPAND_VOLUME}})
	client := dial(t, d)
	response, err := client.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, capability := range response.GetCapabilities() {
		if capability.GetRpc().GetType() == csi.ControllerServiceCapability_RPC_EXPAND_VOLUME {
			t.Error("the driver reports the capability")
		}
	}
	if _, err := client.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("the call ended with %v, want Unimplemented", err)
	}
}

func TestRandomFaultsAreReproducibleAndEnd(t *testing.T) {
	const calls = 200
	kinds := func(seed uint64) (match []bool) {
		plan := Random(seed, 0.5, calls)
		for range 2 * calls {
			match = append(match, plan("CreateVolume", 1).none())
		}
		return match
	}
	first, second, other := kinds(1), kinds(1), kinds(2)
	faults, different := 0, 0
	for i := range first {
		if first[i] != second[i] {
			t.Fatalf("call %d differs with the same seed", i)
		}
		if first[i] != other[i] {
			different++
		}
		if !first[i] {
			faults++
			if i >= calls {
				t.Errorf("call %d has a fault, after the last call that can have one", i)
			}
		}
	}
	if faults < calls/4 || faults > calls*3/4 || different == 0 {
		t.Errorf("%d faults in %d calls, %d differences with another seed", faults, calls, different)
	}
}

func TestStorageSurvivesRestart(t *testing.T) {
	d := New(Options{})
	socket := filepath.Join(t.TempDir(), "csi.sock")
	server := serve(t, d, socket)
	client := connect(t, socket)
	if _, err := create(client, "data"); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	if _, err := client.ControllerGetCapabilities(t.Context(), &csi.ControllerGetCapabilitiesRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("a stopped driver returns %v, want Unavailable", err)
	}
	serve(t, d, socket)
	if _, err := create(connect(t, socket), "data"); err != nil || len(d.Volumes()) != 1 {
		t.Errorf("after the restart: %v, %d volumes", err, len(d.Volumes()))
	}
	if got := len(d.Calls("CreateVolume")); got != 2 {
		t.Errorf("%d calls recorded, want 2", got)
	}
}

func dial(t *testing.T, d *Driver) csi.ControllerClient {
	socket := filepath.Join(t.TempDir(), "csi.sock")
	serve(t, d, socket)
	return connect(t, socket)
}

func connect(t *testing.T, socket string) csi.ControllerClient {
	connection, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return csi.NewControllerClient(connection)
}

// create calls CreateVolume with a timeout of half a second. It waits for a driver that is
// restarting.
func create(client csi.ControllerClient, name string) (*csi.CreateVolumeResponse, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	return client.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}}}, grpc.WaitForReady(true))
}
