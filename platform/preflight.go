package platform

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/platform/preflight"
)

// What a host needs at least before it starts, in bytes.
const (
	minMemoryBytes = 1536 << 20
	minDiskBytes   = 2 << 30
)

// errPreflight follows the printed table.
var errPreflight = errors.New("this machine is not ready for a cluster: mend what is named above and run it again")

// Preflight checks the machine and prints all problems. A problem that prevents the cluster from
// working is an error; a warning is not.
func (h *Host) Preflight(ctx context.Context, out io.Writer) error {
	requirements, err := h.requirements()
	if err != nil {
		return err
	}
	problems := preflight.Run(ctx, requirements, preflight.ThisMachine())
	if err := preflight.Print(out, problems); err != nil {
		return fmt.Errorf("print problems of this machine: %w", err)
	}
	if preflight.Failed(problems) {
		return errPreflight
	}
	return nil
}

// requirements returns what this host needs of its machine.
func (h *Host) requirements() (preflight.Requirements, error) {
	ports, err := h.ports()
	if err != nil {
		return preflight.Requirements{}, err
	}
	return preflight.Requirements{
		NodeName: h.Node.NodeName,
		Programs: preflight.Programs(),
		Ports:    ports,
		Directories: []preflight.Directory{
			{Path: h.DataDir, Free: minDiskBytes, Programs: true},
			{Path: h.Master.EtcdDirectory(), Free: minDiskBytes},
			{Path: h.Node.Slipway.ContainerdDirectory, Free: minDiskBytes},
			{Path: h.Node.VolumeDirectory, Free: minDiskBytes},
		},
		Sockets: []string{h.Socket(), h.etcdSocket(), h.ContainerdSocket(), h.imageSocket()},
		Memory:  minMemoryBytes,
	}, nil
}

// ports returns the addresses that the components will bind, each with its setting.
func (h *Host) ports() ([]preflight.Port, error) {
	master, node := h.settingsFile(config.MasterFile(h.DataDir)), h.settingsFile(config.NodeFile(h.DataDir))
	type binding struct{ use, network, address, setting, file string }
	bindings := []binding{
		{"API", "tcp", address(h.Master.APIAddress()), "servingInfo.bindAddress", master},
		{"etcd", "tcp", h.Master.EtcdAddress(), "etcdConfig.address", master},
		{"etcd peers", "tcp", h.Master.EtcdPeerAddress(), "etcdConfig.peerAddress", master},
		{"registry", "tcp", h.Master.Slipway.Registry.BindAddress, "slipway.registry.bindAddress", master},
		{"kubelet", "tcp", address(h.Node.KubeletAddress()), "servingInfo.bindAddress", node},
		{"proxy health", "tcp", h.proxyHealthAddress(), "proxyArguments.healthz-bind-address", node},
		{"DNS", "tcp", h.Node.DNSAddress(), "dnsBindAddress", node},
		{"DNS", "udp", h.Node.DNSAddress(), "dnsBindAddress", node},
	}
	if settings := h.Master.DNSConfig; settings != nil {
		for _, network := range []string{"tcp", "udp"} {
			bindings = append(bindings, binding{"DNS of the master", network, settings.BindAddress, "dnsConfig.bindAddress", master})
		}
	}
	if metrics := lastOr(h.Node.ProxyArguments["metrics-bind-address"], ""); metrics != "" {
		bindings = append(bindings, binding{"proxy metrics", "tcp", metrics, "proxyArguments.metrics-bind-address", node})
	}
	var ports []preflight.Port
	for _, b := range bindings {
		address, err := netip.ParseAddrPort(b.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: read address %q: %w", b.file, b.setting, b.address, err)
		}
		ports = append(ports, preflight.Port{Use: b.use, Network: b.network, Address: address, Setting: b.setting, File: b.file})
	}
	return ports, nil
}

// settingsFile returns the file that has the settings: the file of the command line, or the
// default.
func (h *Host) settingsFile(defaultFile string) string {
	if h.file != "" {
		return h.file
	}
	return filepath.Clean(defaultFile)
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// proxyHealthAddress returns the address on which the service proxy serves its health.
func (h *Host) proxyHealthAddress() string {
	return lastOr(h.Node.ProxyArguments["healthz-bind-address"], "127.0.0.1:10256")
}

// lastOr returns the last value of an argument, which is in effect, or a default.
func lastOr(values []string, defaultValue string) string {
	if len(values) == 0 {
		return defaultValue
	}
	return values[len(values)-1]
}
