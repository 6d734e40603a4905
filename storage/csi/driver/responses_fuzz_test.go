package driver

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// rawCodec sends and receives messages as raw bytes.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(message any) ([]byte, error) {
	content, ok := message.(*[]byte)
	if !ok {
		return nil, errors.New("the message is not bytes")
	}
	return *content, nil
}

func (rawCodec) Unmarshal(content []byte, message any) error {
	*message.(*[]byte) = content
	return nil
}

// FuzzResponses checks that Describe never accepts an invalid name, or a capability that the driver
// did not send, regardless of the bytes in the response.
func FuzzResponses(f *testing.F) {
	message := func(m proto.Message) []byte {
		content, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		return content
	}
	info := message(&csi.GetPluginInfoResponse{Name: "local.csi.example.com", VendorVersion: "1"})
	service := message(&csi.GetPluginCapabilitiesResponse{Capabilities: []*csi.PluginCapability{{
		Type: &csi.PluginCapability_Service_{Service: &csi.PluginCapability_Service{Type: csi.PluginCapability_Service_CONTROLLER_SERVICE}},
	}}})
	rpc := message(&csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{
		Type: &csi.ControllerServiceCapability_Rpc{Rpc: &csi.ControllerServiceCapability_RPC{
			Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		}},
	}}})
	f.Add([]byte{}, info, service, rpc)
	f.Add([]byte{}, message(&csi.GetPluginInfoResponse{Name: "a/../b"}), service, rpc)
	f.Add([]byte("\x0a\x02\x08\x00"), info, []byte{}, []byte{})
	f.Add([]byte{}, info, []byte("\x0a\x00\x0a\x02\x0a\x00"), []byte("\xff"))
	f.Add([]byte{}, info, service, []byte("\x0a\xff\xff\xff\xff\x0f"))

	var responses atomic.Pointer[map[string][]byte]
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		var request []byte
		if err := stream.RecvMsg(&request); err != nil {
			return err
		}
		method, _ := grpc.MethodFromServerStream(stream)
		response := (*responses.Load())[filepath.Base(method)]
		return stream.SendMsg(&response)
	}))
	socket := filepath.Join(f.TempDir(), "csi.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		f.Fatal(err)
	}
	go func() { _ = server.Serve(listener) }()
	f.Cleanup(server.Stop)
	driver, err := Dial(socket, Options{Timeout: time.Minute})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = driver.Close() })

	f.Fuzz(func(t *testing.T, probe, info, plugin, controller []byte) {
		responses.Store(&map[string][]byte{
			"Probe": probe, "GetPluginInfo": info, "GetPluginCapabilities": plugin, "ControllerGetCapabilities": controller,
		})
		description, err := driver.Describe(t.Context())
		if err != nil {
			return
		}
		if err := CheckName(description.Name); err != nil {
			t.Errorf("accepted the name %q: %v", description.Name, err)
		}
		var resp csi.ControllerGetCapabilitiesResponse
		if err := proto.Unmarshal(controller, &resp); err != nil && len(description.Controller) > 0 {
			t.Errorf("got %v from an invalid message: %v", description.Controller, err)
		}
		if !description.HasService(csi.PluginCapability_Service_CONTROLLER_SERVICE) && len(description.Controller) > 0 {
			t.Errorf("got %v from a driver without a controller", description.Controller)
		}
		for _, capability := range description.Controller {
			if !slices.ContainsFunc(resp.GetCapabilities(), func(c *csi.ControllerServiceCapability) bool { return c.GetRpc().GetType() == capability }) {
				t.Errorf("got %v, which the driver did not send", capability)
			}
		}
	})
}
