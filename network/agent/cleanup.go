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

	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/nat"
)

// Leftovers names what Cleanup removes. An empty field is skipped.
type Leftovers struct {
	Bridge    string   // with the devices of pods plugged into it
	Devices   []string // further devices, such as the DNS server's and hostaddr's
	NFTTable  string   // in family ip
	IdleTable string   // of connections to idle services, in family ip
	NetnsDir  string   // where the container runtime names pods' network namespaces: files cni-*
}

// Cleanup removes everything of the network from the host: pods' network namespaces, devices, our nftables table and
// kube-proxy's. What is gone already is no error, so it may be called again. Call it when neither pods nor the agent nor
// the service proxy run any more. It goes on after a failure and returns all of them.
func Cleanup(ctx context.Context, l Leftovers) error {
	tables := []nat.Table{{Family: knftables.IPv4Family, Name: "kube-proxy"}, {Family: knftables.IPv6Family, Name: "kube-proxy"}}
	if l.NFTTable != "" {
		tables = append(tables, nat.Table{Family: knftables.IPv4Family, Name: l.NFTTable})
	}
	if l.IdleTable != "" {
		tables = append(tables, nat.Table{Family: knftables.IPv4Family, Name: l.IdleTable})
	}
	errs := []error{removeNamespaces(l.NetnsDir), removePodDevices(l.Bridge)}
	for _, name := range append([]string{l.Bridge}, l.Devices...) {
		errs = append(errs, removeDevice(name))
	}
	errs = append(errs, nat.Delete(ctx, tables...))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("clean up network: %w", err)
	}
	return nil
}

// removeNamespaces unmounts and removes the names of pods' network namespaces; a namespace ends with its last name and
// process.
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
		if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT { // EINVAL: no mount
			errs = append(errs, fmt.Errorf("unmount network namespace %q: %w", path, err))
			continue
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove network namespace: %w", err))
		}
	}
	return errors.Join(errs...)
}

// removePodDevices removes the host ends of pods that are ports of the bridge, or of no bridge because theirs is gone.
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
	// A device that just went with its namespace was somebody else's work done.
	if err := netlink.LinkDel(link); err != nil && !errors.Is(err, unix.ENODEV) {
		return fmt.Errorf("remove device %q: %w", name, err)
	}
	return nil
}
