package vrrp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// host is a machine on the shared bridge.
type host struct {
	hosttest.Namespace
	dir     string
	process *exec.Cmd
}

// machines creates hosts that are connected to one bridge. Their addresses are 198.51.100.1,
// 198.51.100.2 and so on.
func machines(t *testing.T, count int) (hosts []*host) {
	t.Helper()
	attributes := netlink.NewLinkAttrs()
	attributes.Name = "cable"
	bridge := &netlink.Bridge{LinkAttrs: attributes}
	check(t, netlink.LinkAdd(bridge), netlink.LinkSetUp(bridge))
	t.Cleanup(func() { _ = netlink.LinkDel(bridge) })
	for i := range count {
		h := &host{Namespace: hosttest.NewNamespace(t, fmt.Sprint("host", i+1)), dir: t.TempDir()}
		inside, err := netns.GetFromName(h.Name)
		check(t, err)
		plug := netlink.NewLinkAttrs()
		plug.Name, plug.MasterIndex = fmt.Sprint("plug", i+1), bridge.Index
		check(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: plug, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(inside))}), inside.Close())
		outside, err := netlinksafe.LinkByName(plug.Name)
		check(t, err, netlink.LinkSetUp(outside))
		t.Cleanup(func() { _ = netlink.LinkDel(outside) }) // the kernel deletes the namespace later
		h.Do(t, func() error {
			for device, address := range map[string]string{"lo": "127.0.0.1/8", "eth0": fmt.Sprintf("198.51.100.%d/24", i+1)} {
				link, err := netlinksafe.LinkByName(device)
				if err != nil {
					return err
				}
				parsed, err := netlink.ParseAddr(address)
				if err != nil {
					return err
				}
				if err := netlink.LinkSetUp(link); err != nil {
					return err
				}
				if err := netlink.AddrReplace(link, parsed); err != nil {
					return err
				}
			}
			return netlink.RouteAdd(&netlink.Route{Gw: net.IPv4(198, 51, 100, 254)})
		})
		hosts = append(hosts, h)
	}
	return hosts
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// run runs keepalived on the host as the pod would.
func (h *host) run(t *testing.T, variables ...string) {
	t.Helper()
	s, err := read(append(variables, "VIRTUAL_IPS=198.51.100.100-101", "REPLICA_COUNT=2")...)
	check(t, err)
	h.Do(t, func() error {
		line, err := s.Prepare(t.Context(), h.dir, Programs{Keepalived: "/usr/sbin/keepalived", Nft: "nft", Netcat: "/bin/busybox nc"})
		if err != nil {
			return err
		}
		h.process = exec.Command(line[0], line[1:]...)
		h.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		log, err := os.Create(filepath.Join(h.dir, "log"))
		if err != nil {
			return err
		}
		defer log.Close()
		h.process.Stdout, h.process.Stderr = log, log
		return h.process.Start()
	})
	t.Cleanup(func() {
		h.kill()
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(h.dir, "log"))
			t.Logf("%s:\n%s", h.Name, log)
		}
	})
}

// kill kills keepalived before it can release addresses, as if the machine had crashed.
func (h *host) kill() {
	_ = syscall.Kill(-h.process.Process.Pid, syscall.SIGKILL) // it might have exited
	_ = h.process.Wait()
}

// sharedAddresses returns the shared addresses on the host.
func (h *host) sharedAddresses() string {
	var matches []string
	_ = h.Try(func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		addresses, err := device.Addrs()
		for _, address := range addresses {
			if strings.HasPrefix(address.String(), "198.51.100.10") {
				matches = append(matches, strings.TrimSuffix(address.String(), "/32"))
			}
		}
		return err
	})
	return strings.Join(matches, " ")
}

func TestFailover(t *testing.T) {
	hosts := machines(t, 2)
	hosts[0].Do(t, func() error { // this filter drops VRRP until Prepare changes it
		return exec.CommandContext(t.Context(), "nft",
			"add table ip filter; add chain ip filter INPUT { type filter hook input priority 0; policy drop; }; add rule ip filter INPUT iif lo accept").Run()
	})
	var up [2]net.Listener
	for i, h := range hosts {
		h.Do(t, func() (err error) {
			up[i], err = net.Listen("tcp4", "127.0.0.1:80")
			return err
		})
		t.Cleanup(func() { up[i].Close() })
	}
	for _, h := range hosts {
		h.run(t)
	}
	// Each host has one address and serves it.
	eventually.Equal(t, "addresses of the first host", hosts[0].sharedAddresses, "198.51.100.101")
	eventually.Equal(t, "addresses of the second host", hosts[1].sharedAddresses, "198.51.100.100")

	hosts[1].kill()
	eventually.Equal(t, "addresses of the remaining host", hosts[0].sharedAddresses, "198.51.100.101 198.51.100.100")

	hosts[1].run(t) // keepalived finds its address still set, and claims it again
	eventually.Equal(t, "addresses of the first host after the second is back", hosts[0].sharedAddresses, "198.51.100.101")

	check(t, up[1].Close()) // the second host's service fails
	eventually.Equal(t, "addresses of the host with a service", hosts[0].sharedAddresses, "198.51.100.101 198.51.100.100")
	eventually.Equal(t, "addresses of the host without a service", hosts[1].sharedAddresses, "")

	check(t, hosts[0].process.Process.Signal(syscall.SIGTERM)) // as the kubelet does
	eventually.Equal(t, "addresses of the terminated host", hosts[0].sharedAddresses, "")
}

func TestMissingDevice(t *testing.T) {
	for variable, want := range map[string]string{"": "set OPENSHIFT_HA_NETWORK_INTERFACE", "NETWORK_INTERFACE=eth9": `find device "eth9"`} {
		s, err := read("VIRTUAL_IPS=192.0.2.1", variable)
		check(t, err)
		if _, err := s.Prepare(t.Context(), t.TempDir(), Programs{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", variable, err, want)
		}
	}
}

func TestUnreadableFilterIsAnError(t *testing.T) {
	host := machines(t, 1)[0]
	s, err := read("VIRTUAL_IPS=192.0.2.1")
	check(t, err)
	rules := func() string {
		output, err := exec.CommandContext(t.Context(), "nft", "list", "ruleset").Output()
		check(t, err)
		return string(output)
	}
	host.Do(t, func() error {
		check(t, exec.CommandContext(t.Context(), "nft", "add table ip other; add chain ip other INPUT; add table ip6 filter; add chain ip6 filter INPUT").Run())
		before := rules()
		if err := s.allowVRRP(t.Context(), "nft"); err != nil || rules() != before {
			t.Errorf("without the chain: %v, the rules are %s", err, rules())
		}
		check(t, exec.CommandContext(t.Context(), "nft", "add table ip filter; add chain ip filter INPUT").Run())
		for range 2 {
			if err := s.allowVRRP(t.Context(), "nft"); err != nil || strings.Count(rules(), multicast) != 1 {
				t.Errorf("with the chain: %v, the rules are %s", err, rules())
			}
		}
		return nil
	})
	program := filepath.Join(t.TempDir(), "nft")
	check(t, os.WriteFile(program, []byte("#!/bin/sh\necho Operation not permitted >&2\nexit 1\n"), 0o700))
	if err := s.allowVRRP(t.Context(), program); err == nil || !strings.Contains(err.Error(), "Operation not permitted") {
		t.Errorf("nft fails: got %v, want its message", err)
	}
}
