package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is the service that the kubelet calls.
type plugin struct {
	pluginapi.UnimplementedDevicePluginServer

	// resource is the name of the resource. pattern matches the paths of the resource's device
	// files.
	resource, pattern string
	// directory is the directory that contains the sockets of the kubelet and its plugins.
	directory string

	mu sync.Mutex
	// files maps device IDs to paths. It contains every device that has ever existed.
	files map[string]string
}

func (p *plugin) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return &pluginapi.DevicePluginOptions{}, nil
}

// ListAndWatch sends the devices when the kubelet calls it, and again after each change.
func (p *plugin) ListAndWatch(_ *pluginapi.Empty, stream grpc.ServerStreamingServer[pluginapi.ListAndWatchResponse]) error {
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	var sent []*pluginapi.Device
	for first := true; ; first = false {
		devices, err := p.devices()
		if err != nil {
			return err
		}
		if first || !slices.EqualFunc(sent, devices, func(a, b *pluginapi.Device) bool { return a.ID == b.ID && a.Health == b.Health }) {
			if err := stream.Send(&pluginapi.ListAndWatchResponse{Devices: devices}); err != nil {
				return err
			}
			sent = devices
		}
		select {
		case <-tick.C:
		case <-stream.Context().Done():
			return nil
		}
	}
}

// devices returns all devices with their IDs and health.
func (p *plugin) devices() ([]*pluginapi.Device, error) {
	paths, err := filepath.Glob(p.pattern)
	if err != nil {
		return nil, fmt.Errorf("find devices %q: %w", p.pattern, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.files == nil {
		p.files = map[string]string{}
	}
	for _, path := range paths {
		p.files[filepath.Base(path)] = path
	}
	var devices []*pluginapi.Device
	for _, id := range slices.Sorted(maps.Keys(p.files)) {
		device := &pluginapi.Device{ID: id, Health: pluginapi.Healthy}
		if info, err := os.Stat(p.files[id]); err != nil || info.Mode()&os.ModeDevice == 0 {
			device.Health = pluginapi.Unhealthy
		}
		devices = append(devices, device)
	}
	return devices, nil
}

// Allocate returns the device files for each container in the request.
func (p *plugin) Allocate(_ context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	response := &pluginapi.AllocateResponse{}
	for _, container := range request.ContainerRequests {
		allocated := &pluginapi.ContainerAllocateResponse{}
		for _, id := range container.DevicesIds {
			path, exists := p.files[id]
			if !exists {
				return nil, status.Errorf(codes.NotFound, "%s has no device %q", p.resource, id)
			}
			allocated.Devices = append(allocated.Devices, &pluginapi.DeviceSpec{HostPath: path, ContainerPath: "/dev/" + id, Permissions: "rw"})
		}
		response.ContainerResponses = append(response.ContainerResponses, allocated)
	}
	return response, nil
}
