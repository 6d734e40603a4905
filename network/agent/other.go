package agent

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// OtherNetwork is the component that replaces Agent if an administrator's CNI plugin provides the
// pod network. It assigns the address of the pods' DNS server to the host, enables packet
// forwarding, and reports missing parts of the plugin.
type OtherNetwork struct {
	ConfDir      string     // directory of the plugin's configuration
	BinDirs      []string   // directories of the plugin's programs
	FormerBridge string     // an Agent's bridge; pods on it cannot reach other pods
	DNSDevice    string     // device for DNSIP, such as slipway-dns
	DNSIP        netip.Addr // address of the pods' DNS server
	// SysctlRecord has the same meaning as Agent.SysctlRecord.
	SysctlRecord string
	// CheckInterval is the time between two checks; the default is 5s.
	CheckInterval time.Duration

	note func(text string)
}

// Name returns the component's name.
func (*OtherNetwork) Name() string { return "network" }

// Notes sets the function that receives a description of the plugin's missing parts.
func (o *OtherNetwork) Notes(note func(text string)) { o.note = note }

// Run calls ready when the host has the DNS server's address, because a plugin might need services
// and DNS before it is complete. Run then repairs the address and checks the plugin until ctx is
// done.
func (o *OtherNetwork) Run(ctx context.Context, ready func()) error {
	if err := o.apply(); err != nil {
		return fmt.Errorf("network: %w", err)
	}
	ready()
	ticker := time.NewTicker(cmp.Or(o.CheckInterval, 5*time.Second))
	defer ticker.Stop()
	noted := ""
	for {
		note := o.problem()
		if note != noted && o.note != nil {
			o.note(note)
		}
		noted = note
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		if err := o.apply(); err != nil {
			slog.Error("cannot repair network", "error", err)
		}
	}
}

// apply creates or repairs the DNS server's device, and enables packet forwarding on the host.
func (o *OtherNetwork) apply() error {
	if err := ensureBridge(o.DNSDevice, netip.PrefixFrom(o.DNSIP, o.DNSIP.BitLen()), 1500); err != nil {
		return err
	}
	return forwardIPv4(o.SysctlRecord)
}

// problem returns the reason why pods have no network and how to resolve it, or "" if pods have a
// network.
func (o *OtherNetwork) problem() string {
	if err := checkPlugin(o.ConfDir, o.BinDirs); err != nil {
		return err.Error()
	}
	if link, err := findDevice(o.FormerBridge); err == nil && link != nil {
		return fmt.Sprintf("the bridge %s of the former network plugin remains, and pods on it are not connected to others; "+
			"run slipway down, then slipway up", o.FormerBridge)
	}
	return ""
}
