package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/slipway-platform/slipway/internal/thread"
	"github.com/slipway-platform/slipway/node/teardown"
)

// address is the machine's address in the namespace of each side, from the range for benchmarks
// (RFC 2544); nothing answers at the gateway.
const (
	address = "198.18.0.10"
	gateway = "198.18.0.1"
)

// cleanupTime is how long a side may take to go away after it was measured or the measurement was
// interrupted.
const cleanupTime = 2 * time.Minute

// host is what one side has for itself: a network namespace without a name, which goes with the
// last process in it, a directory, and the name of a control group.
type host struct {
	dir        string
	cgroupRoot string
	network    netns.NsHandle
}

// newHost makes the directory and the namespace with lo, an address and a default route.
func newHost(dir, cgroupRoot string) (*host, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make directory: %w", err)
	}
	h := &host{dir: dir, cgroupRoot: cgroupRoot, network: netns.None()}
	err := thread.Run(func() (err error) {
		if h.network, err = netns.New(); err != nil {
			return err
		}
		return connect()
	})
	if err != nil {
		return nil, fmt.Errorf("make network namespace: %w", err)
	}
	return h, nil
}

// connect makes the devices of the calling thread's namespace. The device with the address is a
// bridge without ports, because not every kernel has dummy devices.
func connect() error {
	if err := addBridge("eth0", address+"/24"); err != nil {
		return err
	}
	lo, err := netlinksafe.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find device lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set device lo up: %w", err)
	}
	if err := netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("add default route: %w", err)
	}
	return nil
}

// addBridge makes a bridge with an address in CIDR notation in the calling thread's namespace.
func addBridge(name, cidr string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make device %q: %w", name, err)
	}
	parsed, err := netlink.ParseAddr(cidr)
	if err != nil {
		return fmt.Errorf("read address %q: %w", cidr, err)
	}
	if err := netlink.AddrAdd(bridge, parsed); err != nil {
		return fmt.Errorf("give device %q address %s: %w", name, cidr, err)
	}
	if err := netlink.LinkSetUp(bridge); err != nil {
		return fmt.Errorf("set device %q up: %w", name, err)
	}
	return nil
}

// do runs f on a thread that is in the namespace.
func (h *host) do(f func() error) error {
	return thread.Run(func() error {
		if err := netns.Set(h.network); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return f()
	})
}

// dial connects within the namespace, for clients outside of it.
func (h *host) dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = h.do(func() error {
		conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// start starts a command in the namespace and in a process group of its own, out of reach of the
// keyboard's interrupt.
func (h *host) start(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return h.do(command.Start)
}

// path is a path below the directory.
func (h *host) path(names ...string) string {
	return filepath.Join(append([]string{h.dir}, names...)...)
}

// remove ends and removes whatever is left of the side, and returns an error that names what its
// own stop has left behind.
func (h *host) remove(ctx context.Context) error {
	var left []string
	processes, err := h.processes()
	for _, p := range processes {
		left = append(left, fmt.Sprintf("process %d (%s)", p.pid, p.name))
	}
	problems := []error{err, h.kill(ctx)}

	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(h.dir))
	problems = append(problems, err)
	for _, m := range mounts {
		left = append(left, "mount "+m.Mountpoint)
	}
	problems = append(problems, teardown.Mounts(h.dir))
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + h.cgroupRoot)
	problems = append(problems, err)
	for _, group := range groups {
		left = append(left, "control group "+group)
	}
	problems = append(problems, teardown.Cgroups(h.cgroupRoot), h.network.Close(), os.RemoveAll(h.dir))
	if len(left) > 0 {
		problems = append(problems, fmt.Errorf("its stop left behind, and the benchmark removed: %s", strings.Join(left, ", ")))
	}
	return errors.Join(problems...)
}

// kill ends every process of the side.
func (h *host) kill(ctx context.Context) error {
	return poll(ctx, 10*time.Millisecond, func(context.Context) (bool, error) {
		processes, err := h.processes()
		for _, p := range processes {
			_ = syscall.Kill(p.pid, syscall.SIGKILL) // one that has just ended needs none
		}
		return len(processes) == 0, err
	})
}
