// Package vrrp lets hosts share virtual addresses with keepalived: each address is on one host, and moves to another when that one, or what it serves,
// fails. It runs in the pods of `oc adm ipfailover` and is told what to do by environment variables.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, high availability: the variables OPENSHIFT_HA_*; keepalived.conf(5).
package vrrp

import (
	"bytes"
	"context"
	"encoding/binary"
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

// Programs are the paths of what runs.
type Programs struct {
	// Keepalived, Nft and Netcat, of which the latter is busybox's nc.
	Keepalived, Nft, Netcat string
}

// Prepare writes keepalived's configuration into a directory, lets VRRP through the host's filter, and returns the command that shares the addresses: it
// runs until it is asked to end, and gives them up then.
func (s *Settings) Prepare(ctx context.Context, dir string, use Programs) (command []string, err error) {
	device, own, err := s.device()
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, use.Nft); err != nil {
		return nil, err
	}
	content, err := s.config(device, own, use)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "keepalived.conf")
	if err := atomicfile.Write(file, content, 0o600); err != nil {
		return nil, err
	}
	return []string{use.Keepalived, "--dont-fork", "--log-console", "--log-detail", "--vrrp", "--use-file=" + file,
		"--pid=" + filepath.Join(dir, "keepalived.pid"), "--vrrp_pid=" + filepath.Join(dir, "vrrp.pid")}, nil
}

// device is what gets the addresses, and the first address that it has itself.
func (s *Settings) device() (name string, own netip.Addr, err error) {
	name = s.Interface
	if name == "" {
		routes, err := netlinksafe.RouteList(nil, netlink.FAMILY_V4)
		if err != nil {
			return "", own, fmt.Errorf("find the device of the default route: %w", err)
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
		return "", own, fmt.Errorf("find the device of the default route: there is none; set %sNETWORK_INTERFACE", prefix)
	}
	device, err := net.InterfaceByName(name)
	if err != nil {
		return "", own, fmt.Errorf("find device %q: %w; set %sNETWORK_INTERFACE", name, err, prefix)
	}
	addresses, err := device.Addrs()
	if err != nil {
		return "", own, fmt.Errorf("find addresses of device %q: %w", name, err)
	}
	for _, address := range addresses {
		if network, err := netip.ParsePrefix(address.String()); err == nil && network.Addr().Is4() {
			return name, network.Addr(), nil
		}
	}
	return "", own, fmt.Errorf("find address of device %q: it has none of IPv4; set %sNETWORK_INTERFACE", name, prefix)
}

// multicast is where the hosts of VRRP speak to each other.
const multicast = "224.0.0.18"

// open lets VRRP through the chain, if the host has it and it does not yet.
func (s *Settings) open(ctx context.Context, nft string) error {
	if s.Chain == "" {
		return nil
	}
	rules, err := exec.CommandContext(ctx, nft, "list", "chain", "ip", "filter", s.Chain).Output()
	if err != nil || strings.Contains(string(rules), multicast) { // there is no such chain: nothing is filtered
		return nil
	}
	if said, err := exec.CommandContext(ctx, nft, "insert", "rule", "ip", "filter", s.Chain, "ip", "daddr", multicast, "accept").CombinedOutput(); err != nil {
		return fmt.Errorf("let VRRP through chain %q: %w: %s", s.Chain, err, bytes.TrimSpace(said))
	}
	return nil
}

// config is keepalived's configuration of a host.
func (s *Settings) config(device string, own netip.Addr, use Programs) ([]byte, error) {
	type instance struct {
		ID, Priority    int
		First, Excluded []netip.Addr
	}
	var instances []instance
	for i, group := range s.groups() {
		first := min(len(group), maxTold)
		instances = append(instances, instance{s.FirstID + i, s.priority(i, own), group[:first], group[first:]})
	}
	check := s.CheckScript
	if check == "" && s.Port != 0 { // busybox's nc has no other way to only connect
		check = fmt.Sprintf("%s -w 2 127.0.0.1 %d -e /bin/true", use.Netcat, s.Port)
	}
	var written bytes.Buffer
	err := configuration.Execute(&written, map[string]any{"Settings": s, "Device": device, "Check": check, "Interval": int(s.CheckInterval.Seconds()), "Instances": instances})
	if err != nil {
		return nil, fmt.Errorf("write keepalived's configuration: %w", err)
	}
	return written.Bytes(), nil
}

const (
	// highest is the priority of the host that shall have a group; lower ones follow in steps.
	highest, lowest = 250, 1
	// maxTold is how many addresses of a group keepalived takes into its messages.
	maxTold = 20
)

// priority is that of a host for a group. Hosts have different first groups as their addresses follow each other, so that the groups are spread over them.
func (s *Settings) priority(group int, own netip.Addr) int {
	bytes := own.As4()
	slot := int(binary.BigEndian.Uint32(bytes[:]) % uint32(s.Replicas))
	step := max(1, min(10, (highest-lowest)/s.Replicas))
	return highest - step*((group-slot+s.Replicas*(maxID+1))%s.Replicas)
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
