// Package vrrp shares virtual addresses among hosts with keepalived. Each address is on one host,
// and moves to another host if that host or its service fails. The package runs in the pods of `oc
// adm ipfailover` and is configured by the OPENSHIFT_HA_* environment variables.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, high availability;
// keepalived.conf(5).
package vrrp

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Programs contains the paths of the programs to run.
type Programs struct {
	// Netcat is busybox's nc.
	Keepalived, Nft, Netcat string
}

// Prepare writes keepalived's configuration to a directory, and adds a rule that accepts VRRP to
// the host's packet filter. It returns the command that shares the addresses. The command runs
// until it is terminated, and then releases the addresses.
func (s *Settings) Prepare(ctx context.Context, dir string, programs Programs) (command []string, err error) {
	device, address, err := s.device()
	if err != nil {
		return nil, err
	}
	if err := s.allowVRRP(ctx, programs.Nft); err != nil {
		return nil, err
	}
	content, err := s.config(device, address, programs)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "keepalived.conf")
	if err := atomicfile.Write(file, content, 0o600); err != nil {
		return nil, err
	}
	return []string{programs.Keepalived, "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file=" + file,
		"--pid=" + filepath.Join(dir, "keepalived.pid"), "--vrrp_pid=" + filepath.Join(dir, "vrrp.pid")}, nil
}

// device returns the device for the addresses, and the device's first address.
func (s *Settings) device() (name string, address netip.Addr, err error) {
	name = s.Interface
	if name == "" {
		routes, err := netlinksafe.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			return "", address, fmt.Errorf("find default route device: %w", err)
		}
		for _, route := range routes {
			if route.Dst == nil || route.Dst.IP.IsUnspecified() {
				if device, err := net.InterfaceByIndex(route.LinkIndex); err == nil {
					name = device.Name
					break
				}
			}
		}
	}
	if name == "" {
		return "", address, fmt.Errorf("find default route device: it does not exist; set %sNETWORK_INTERFACE", prefix)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return "", address, fmt.Errorf("find device %q: %w; set %sNETWORK_INTERFACE", name, err, prefix)
	}
	addresses, err := device.Addrs()
	if err != nil {
		return "", address, fmt.Errorf("find addresses of device %q: %w", name, err)
	}
	for _, address := range addresses {
		if network, err := netip.ParsePrefix(address.String()); err == nil && network.Addr().Is4() {
			return name, network.Addr(), nil
		}
	}
	return "", address, fmt.Errorf("find address of device %q: it has no IPv4 address; set %sNETWORK_INTERFACE", name, prefix)
}

// multicast is the VRRP multicast address.
const multicast = "224.0.0.18"

// allowVRRP adds a rule that accepts VRRP to the chain if the chain exists and does not contain the
// rule.
func (s *Settings) allowVRRP(ctx context.Context, nft string) error {
	if s.Chain == "" {
		return nil
	}
	// List all chains first, because nft's error for a chain that does not exist cannot be
	// distinguished from other errors.
	chains, err := run(ctx, nft, "list", "chains", "ip")
	if err != nil {
		return fmt.Errorf("list filter chains to allow VRRP: %w", err)
	}
	if !hasChain(chains, "filter", s.Chain) {
		return nil // the host does not filter packets
	}
	rules, err := run(ctx, nft, "list", "chain", "ip", "filter", s.Chain)
	if err != nil {
		return fmt.Errorf("list chain %q to allow VRRP: %w", s.Chain, err)
	}
	if strings.Contains(rules, multicast) {
		return nil
	}
	if _, err := run(ctx, nft, "insert", "rule", "ip", "filter", s.Chain, "ip", "daddr", multicast, "accept"); err != nil {
		return fmt.Errorf("allow VRRP in chain %q: %w", s.Chain, err)
	}
	return nil
}

// run runs a program and returns its output. The error contains the program's standard error.
func run(ctx context.Context, program string, args ...string) (string, error) {
	output, err := exec.CommandContext(ctx, program, args...).Output()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(exit.Stderr))
	}
	return string(output), err
}

// hasChain reports whether a list of chains in nft's format contains the given chain of a table.
func hasChain(list, table, chain string) bool {
	current := ""
	for line := range strings.Lines(list) {
		switch words := strings.Fields(line); {
		case len(words) >= 3 && words[0] == "table":
			current = words[2]
		case len(words) >= 2 && words[0] == "chain" && words[1] == chain && current == table:
			return true
		}
	}
	return false
}

// config returns a host's keepalived configuration.
func (s *Settings) config(device string, address netip.Addr, programs Programs) ([]byte, error) {
	type instance struct {
		ID, Priority    int
		First, Excluded []netip.Addr
	}
	var instances []instance
	for i, group := range s.groups() {
		advertised := min(len(group), maxAdvertised)
		instances = append(instances, instance{s.FirstID + i, s.priority(i, address), group[:advertised], group[advertised:]})
	}
	check := s.CheckScript
	if check == "" && s.Port != 0 { // busybox's nc cannot connect and exit, so it runs /bin/true
		check = fmt.Sprintf("%s -w 2 127.0.0.1 %d -e /bin/true", programs.Netcat, s.Port)
	}
	var buf bytes.Buffer
	err := configuration.Execute(&buf, map[string]any{"Settings": s, "Device": device, "Check": check, "Interval": int(s.CheckInterval.Seconds()), "Instances": instances})
	if err != nil {
		return nil, fmt.Errorf("write keepalived's configuration: %w", err)
	}
	return buf.Bytes(), nil
}

const (
	// maxPriority is the priority of a group's preferred host. The priorities of the other hosts
	// decrease in steps.
	maxPriority, minPriority = 250, 1
	// maxAdvertised is the maximum number of a group's addresses that keepalived includes in its
	// messages.
	maxAdvertised = 20
)

// priority returns a host's priority for a group. The order of the hosts' addresses determines each
// group's preferred host, so that the groups are spread across the hosts.
func (s *Settings) priority(group int, address netip.Addr) int {
	bytes := address.As4()
	slot := int(binary.BigEndian.Uint32(bytes[:]) % uint32(s.Replicas))
	step := max(1, min(10, (maxPriority-minPriority)/s.Replicas))
	return maxPriority - step*((group-slot+s.Replicas*(maxID+1))%s.Replicas)
}

var configuration = template.Must(template.New("keepalived.conf").Parse(`global_defs {
	router_id {{.Settings.Name}}
	script_user root
	vrrp_garp_master_refresh 60
}
{{- if .Check}}

vrrp_script check {
	script "{{.Check}}"
	interval {{.Interval}}
	timeout 10
	fall 2
	rise 2
}
{{- end}}
{{- range .Instances}}

vrrp_instance {{$.Settings.Name}}_{{.ID}} {
	interface {{$.Device}}
	state BACKUP
	virtual_router_id {{.ID}}
	priority {{.Priority}}
	advert_int 1
{{- with $.Settings.Preemption}}
	{{.}}
{{- end}}
	virtual_ipaddress {
{{- range .First}}
		{{.}}/32 dev {{$.Device}}
{{- end}}
	}
{{- with .Excluded}}
	virtual_ipaddress_excluded {
{{- range .}}
		{{.}}/32 dev {{$.Device}}
{{- end}}
	}
{{- end}}
{{- if $.Check}}
	track_script {
		check
	}
{{- end}}
{{- with $.Settings.NotifyScript}}
	notify "{{.}}"
{{- end}}
}
{{- end}}
`))
