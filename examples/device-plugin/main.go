// Command device-plugin gives pods access to files in the machine's /dev, as a resource that pods
// request in the same way as CPU. It is a kubelet device plugin (API v1beta1).
//
//	device-plugin --resource example.com/card --devices '/dev/card*'
//
// Each file that matches the pattern is one device, and the file's name is the device's ID. Only
// one container at a time can use the device, as /dev/<name>. A device whose file disappears is
// unhealthy until the file reappears.
package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// checkInterval is the interval between checks of the devices and the socket.
const checkInterval = time.Second

func main() {
	var p plugin
	flag.StringVar(&p.resource, "resource", "example.com/card", "name of the resource")
	flag.StringVar(&p.pattern, "devices", "/dev/card*", "pattern of the files that are devices")
	flag.StringVar(&p.directory, "directory", pluginapi.DevicePluginPath, "directory of the kubelet's socket for device plugins")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	p.run(ctx)
}

// run serves the kubelet until ctx is done. It registers the plugin again whenever the kubelet
// restarts, because a starting kubelet removes the plugins' sockets.
func (p *plugin) run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := p.serve(ctx); err != nil {
			slog.Warn("plugin is not registered", "resource", p.resource, "error", err, "retryAfter", checkInterval)
		}
		select {
		case <-time.After(checkInterval):
		case <-ctx.Done():
		}
	}
}

// serve registers the plugin and serves it until its socket is removed or ctx is done.
func (p *plugin) serve(ctx context.Context) error {
	socket := filepath.Join(p.directory, filepath.Base(p.resource)+".sock")
	if err := os.RemoveAll(socket); err != nil { // remove the socket of an earlier run
		return err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	pluginapi.RegisterDevicePluginServer(server, p)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	defer func() { server.Stop(); <-served }()

	if err := p.register(ctx, filepath.Base(socket)); err != nil {
		return err
	}
	slog.Info("plugin is registered", "resource", p.resource)
	tick := time.NewTicker(checkInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := os.Stat(socket); err != nil {
			return fmt.Errorf("find the plugin's socket: %w", err)
		}
	}
}

// register sends the name of the plugin's socket to the kubelet.
func (p *plugin) register(ctx context.Context, endpoint string) error {
	connection, err := grpc.NewClient("unix://"+filepath.Join(p.directory, "kubelet.sock"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("connect to the kubelet: %w", err)
	}
	defer connection.Close()
	request := &pluginapi.RegisterRequest{Version: pluginapi.Version, Endpoint: endpoint, ResourceName: p.resource}
	if _, err := pluginapi.NewRegistrationClient(connection).Register(ctx, request); err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	return nil
}
