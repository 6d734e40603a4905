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

// What a host should have at least before it starts, in bytes.
const (
	minMemory = 1536 << 20
	minDisk   = 2 << 30
)

// errPreflight follows the table that says everything.
var errPreflight = errors.New("this machine is not ready for a cluster: mend what is named above and run it again")

// preflight looks at the machine and prints every problem. One that keeps the cluster from working is
// an error; warnings are not.
func (h *host) preflight(ctx context.Context, out io.Writer) error {
	want, err := h.requirements()
	if err != nil {
		return err
	}
	problems := preflight.Run(ctx, want, preflight.ThisMachine())
	if err := preflight.Print(out, problems); err != nil {
		return fmt.Errorf("print problems of this machine: %w", err)
	}
	if preflight.Failed(problems) {
		return errPreflight
	}
	return nil
}

// requirements are what this host needs of its machine.
func (h *host) requirements() (preflight.Requirements, error) {
	ports, err := h.ports()
	if err != nil {
		return preflight.Requirements{}, err
	}
	return preflight.Requirements{
		NodeName: h.Node.NodeName,
		Programs: preflight.Programs(),
		Ports:    ports,
		Directories: []preflight.Directory{
			{Path: h.dataDir, Free: minDisk, Programs: true},
			{Path: h.Master.EtcdDirectory(), Free: minDisk},
			{Path: h.Node.Slipway.ContainerdDirectory, Free: minDisk},
			{Path: h.Node.VolumeDirectory, Free: minDisk},
		},
		Sockets: []string{h.socket(), h.etcdSocket(), h.containerdSocket(), h.imageSocket()},
		Memory:  minMemory,
	}, nil
}

// ports are the addresses that the parts will bind, with the setting that each comes from.
func (h *host) ports() ([]preflight.Port, error) {
	master, node := h.configFile(config.MasterFile(h.dataDir)), h.configFile(config.NodeFile(h.dataDir))
	type binding struct{ use, network, address, setting, file string }
	rows := []binding{
		{"API", "tcp", address(h.Master.APIAddress()), "servingInfo.bindAddress", master},
		{"etcd", "tcp", h.Master.EtcdAddress(), "etcdConfig.address", master},
		{"etcd peers", "tcp", h.Master.EtcdPeerAddress(), "etcdConfig.peerAddress", master},
		{"registry", "tcp", h.Master.Slipway.Registry.BindAddress, "slipway.registry.bindAddress", master},
		{"kubelet", "tcp", address(h.Node.KubeletAddress()), "servingInfo.bindAddress", node},
		{"proxy health", "tcp", h.proxyHealthAddress(), "proxyArguments.healthz-bind-address", node},
		{"DNS", "tcp", h.Node.DNSAddress(), "dnsBindAddress", node},
		{"DNS", "udp", h.Node.DNSAddress(), "dnsBindAddress", node},
	}
	if metrics := lastOr(h.Node.ProxyArguments["metrics-bind-address"], ""); metrics != "" { // none by default
		rows = append(rows, binding{"proxy metrics", "tcp", metrics, "proxyArguments.metrics-bind-address", node})
	}
	var ports []preflight.Port
	for _, row := range rows {
		parsed, err := netip.ParseAddrPort(row.address)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: read address %q: %w", row.file, row.setting, row.address, err)
		}
		ports = append(ports, preflight.Port{
			Use: row.use, Network: row.network, Address: parsed, Setting: row.setting, File: row.file,
		})
	}
	return ports, nil
}

// configFile is the file that settings are read from: the one of the data directory, unless another was
// named.
func (h *host) configFile(usual string) string {
	if h.file != "" {
		return h.file
	}
	return filepath.Clean(usual)
}

func address(host string, port int) string { return net.JoinHostPort(host, strconv.Itoa(port)) }

// proxyHealthAddress is where the service proxy tells about its health.
func (h *host) proxyHealthAddress() string {
	return lastOr(h.Node.ProxyArguments["healthz-bind-address"], "127.0.0.1:10256")
}

// lastOr is the last value of an argument, which is the one that counts, or the fallback.
func lastOr(values []string, fallback string) string {
	if len(values) == 0 {
		return fallback
	}
	return values[len(values)-1]
}
