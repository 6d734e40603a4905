package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/adminchain"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/egressip"
	"github.com/slipway-platform/slipway/network/hostfirewall"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/nat"
	"github.com/slipway-platform/slipway/network/shaping"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// CleanupConfig lists the objects that Cleanup removes. Cleanup skips empty fields.
type CleanupConfig struct {
	Bridge   string   // Cleanup also removes the pods' devices on this bridge
	Devices  []string // other devices, such as the devices of the DNS server and of hostaddr
	NFTTable string   // removed in the families ip, ip6 and netdev
	Tables   []string // tables of other components, in the same families
	// AdminRules means that Cleanup also removes the administrators' rules (package adminchain).
	AdminRules bool
	// SysctlRecord has the same value as Agent.SysctlRecord.
	SysctlRecord string
	NetnsDir     string // directory of the container runtime's network namespaces, cni-*
}

// Cleanup removes the complete network from the host: the pods' network namespaces, the devices,
// the programs on network segments, and the nftables tables of the agent and of kube-proxy. It also
// undoes the agent's changes to forwarding sysctls. It is idempotent: it ignores missing objects.
// Call it after the pods, the agent and the service proxy have stopped. It continues after errors
// and returns all of them.
func Cleanup(ctx context.Context, l CleanupConfig) error {
	tables := []nat.Table{{Family: knftables.IPv4Family, Name: "kube-proxy"}, {Family: knftables.IPv6Family, Name: "kube-proxy"}}
	for _, name := range append(l.Tables[:len(l.Tables):len(l.Tables)], l.NFTTable) {
		for _, family := range []knftables.Family{knftables.IPv4Family, knftables.IPv6Family, knftables.NetDevFamily} {
			if name != "" {
				tables = append(tables, nat.Table{Family: family, Name: name})
			}
		}
	}
	errs := []error{removeNamespaces(l.NetnsDir), removePodDevices(l.Bridge), removeRoutes(), vxlan.RemoveSegments(), egressip.RemoveRule(ipfamily.IPv4), egressip.RemoveRule(ipfamily.IPv6), egressip.Release()}
	for _, name := range append([]string{l.Bridge}, l.Devices...) {
		errs = append(errs, removeDevice(name))
	}
	errs = append(errs, shaping.RemoveOrphans(), nat.Delete(ctx, tables...), restoreSysctls(l.SysctlRecord), hostfirewall.Remove(ctx), adminchain.Remove(ctx, l.AdminRules))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up network: %w", err)
	}
	return nil
}

// removeNamespaces unmounts and removes the files that keep the pods' network namespaces alive. The
// kernel deletes a namespace when no file and no process refers to it anymore.
func removeNamespaces(dir string) error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list network namespaces: %w", err)
	}
	var errs []error
	for _, entry := range entries {
		if !strings.HasPrefix(entry.Name(), "cni-") {
			continue
		}
		path := filepath.Join(dir, entry.Name())
		// EINVAL means that the path is not a mount point.
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, fmt.Errorf("unmount network namespace %q: %w", path, err))
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove network namespace: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removePodDevices removes the host ends of pods' veth devices. These devices are ports of the
// bridge or, if the bridge no longer exists, ports of no bridge.
func removePodDevices(bridge string) error {
	links, err := netlinksafe.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	masters := map[int]bool{0: true}
	for _, link := range links {
		if link.Attrs().Name == bridge {
			masters[link.Attrs().Index] = true
		}
	}
	var errs []error
	for _, link := range links {
		if cni.IsPodDevice(link) && masters[link.Attrs().MasterIndex] {
			errs = append(errs, removeDevice(link.Attrs().Name))
		}
	}
	return errors.Join(errs...)
}

func removeDevice(name string) error {
	if name == "" {
		return nil
	}
	link, err := findDevice(name)
	if link == nil {
		return err
	}
	// The device might have been removed with its namespace after findDevice returned.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove device %q: %w", name, err)
	}
	return nil
}
