// Package host creates a network namespace, a directory and a cgroup for each side of a comparison,
// and measures the processes in them.
package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/vishvananda/netlink"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/node/teardown"
)

// Address is the machine's address in each side's network namespace, in the range that RFC 2544
// reserves for benchmarks. gateway is the default route's next hop, an address that no host uses.
const (
	Address = "198.18.0.10"
	gateway = "198.18.0.1"
)

// CleanupTime is the timeout for removing a side after a measurement or an interrupt.
const CleanupTime = 2 * time.Minute

const dialTimeout = 5 * time.Second

// Host contains one side's resources: an unnamed network namespace, which is removed when its last
// process exits, a directory, and the name of a cgroup.
type Host struct {
	Dir        string
	CgroupRoot string
	network    *netnamespace.Namespace
}

// New creates the directory, and the network namespace with lo, an address and a default route.
func New(dir, cgroupRoot string) (*Host, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("create directory: %w", err)
	}
	network, err := netnamespace.New()
	if err != nil {
		return nil, err
	}
	h := &Host{Dir: dir, CgroupRoot: cgroupRoot, network: network}
	if err := h.Do(connect); err != nil {
		return nil, errors.Join(fmt.Errorf("connect network namespace: %w", err), network.Close())
	}
	return h, nil
}

// connect creates the devices in the calling thread's network namespace. It assigns the address to
// a bridge without ports, because not every kernel supports dummy devices.
func connect() error {
	if err := errors.Join(AddBridge("eth0", Address+"/24"), netnamespace.SetUp("lo", netip.Prefix{})); err != nil {
		return err
	}
	if err := netlink.RouteAdd(&netlink.Route{Gw: net.ParseIP(gateway)}); err != nil {
		return fmt.Errorf("add default route: %w", err)
	}
	return nil
}

// AddBridge creates a bridge with an address in CIDR notation in the calling thread's network
// namespace.
func AddBridge(name, cidr string) error {
	attrs := netlink.NewLinkAttrs()
	attrs.Name = name
	bridge := &netlink.Bridge{LinkAttrs: attrs}
	if err := netlink.LinkAdd(bridge); err != nil {
		return fmt.Errorf("make device %q: %w", name, err)
	}
	prefix, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fmt.Errorf("parse address: %w", err)
	}
	return netnamespace.SetUp(name, prefix)
}

// Do runs f on a thread in the namespace.
func (h *Host) Do(f func() error) error { return h.network.Do(f) }

// Dial connects from within the namespace, on behalf of clients outside it.
func (h *Host) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	return h.network.Dial(ctx, network, address)
}

// Start starts a command in the namespace and in a separate process group, so that an interrupt
// from the keyboard does not reach the command.
func (h *Host) Start(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return h.Do(command.Start)
}

// Path returns a path below the directory.
func (h *Host) Path(names ...string) string {
	return filepath.Join(append([]string{h.Dir}, names...)...)
}

// Remove kills the side's processes and removes all of its remaining resources. The error lists the
// resources that the side's stop function should have removed.
func (h *Host) Remove(ctx context.Context) error {
	var remaining []string
	processes, err := h.Processes()
	for _, p := range processes {
		remaining = append(remaining, fmt.Sprintf("process %d (%s)", p.PID, p.Name))
	}
	problems := []error{err, h.kill(ctx)}

	mounts, err := mountinfo.GetMounts(mountinfo.PrefixFilter(h.Dir))
	problems = append(problems, err)
	for _, m := range mounts {
		remaining = append(remaining, "mount "+m.Mountpoint)
	}
	_, err = teardown.Mounts(h.Dir)
	problems = append(problems, err)
	groups, err := filepath.Glob("/sys/fs/cgroup/*" + h.CgroupRoot)
	problems = append(problems, err)
	for _, group := range groups {
		remaining = append(remaining, "cgroup "+group)
	}
	problems = append(problems, teardown.Cgroups(h.CgroupRoot), h.network.Close(), os.RemoveAll(h.Dir))
	if len(remaining) > 0 {
		problems = append(problems, fmt.Errorf("the side did not remove at its stop: %s; the benchmark removed it", strings.Join(remaining, ", ")))
	}
	return errors.Join(problems...)
}

// kill kills all of the side's processes.
func (h *Host) kill(ctx context.Context) error {
	return wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(context.Context) (bool, error) {
		processes, err := h.Processes()
		for _, p := range processes {
			_ = syscall.Kill(p.PID, syscall.SIGKILL) // Kill fails if the process has just ended.
		}
		return len(processes) == 0, err
	})
}
