package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/status"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
	"github.com/slipway-platform/slipway/supervisor/component"
)

// networkState is the output of `slipway status --network -o json`.
type networkState struct {
	*status.Report
	// Components contains the state of the host's components that belong to the network.
	Components []supervisor.ComponentStatus `json:"components"`
}

// networkComponents returns the names of the components that belong to the network.
func networkComponents() []string {
	return []string{"network", "network-policy", "bandwidth", "proxy", "dns", "pod-network", "egress-ips"}
}

// printNetwork prints the state of the host's network. It returns errNotReady if a host or a
// component has a problem.
func printNetwork(cmd *cobra.Command, h *host.Host, output string) error {
	host, err := h.NetworkStatus()
	if err != nil {
		return err
	}
	supervised, err := supervisorStatus(cmd.Context(), h)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), networkTimeout)
	defer cancel()
	state := networkState{Components: componentsOf(supervised)}
	if state.Report, err = host.Read(ctx); err != nil {
		return fmt.Errorf("read network state: %w; to see the state of the components, run: slipway status", err)
	}
	if err := printAs(cmd.OutOrStdout(), output, state, state.write); err != nil {
		return err
	}
	if !state.healthy() {
		return errNotReady
	}
	return nil
}

// componentsOf returns the components that belong to the network.
func componentsOf(supervised supervisor.Status) (components []supervisor.ComponentStatus) {
	for _, process := range supervised.Processes {
		for _, c := range process.Components {
			if slices.Contains(networkComponents(), c.Name) {
				components = append(components, c)
			}
		}
	}
	return components
}

func (s networkState) healthy() bool {
	return s.Healthy() && !slices.ContainsFunc(s.Components, func(c supervisor.ComponentStatus) bool {
		return c.State != component.Ready && c.State != component.Standby
	})
}

func (s networkState) write(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, values ...any) { fmt.Fprintf(table, name+"\t"+format+"\n", values...) }
	row("Plugin", "%s", s.Plugin)
	row("Transport", "%s%s", s.Transport, s.device())
	row("Pods", "%s", strings.Join(s.PodNetworks, ", "))
	row("Services", "%s", s.ServiceNetwork)
	row("This host", "%s, %d pods", cmp.Or(s.Subnet, "no subnet"), s.Pods)
	row("Projects", "%d, with %d network IDs", s.Projects, s.NetworkIDs)
	row("Policies", "%d NetworkPolicies, %d EgressNetworkPolicies", s.NetworkPolicies, s.EgressFirewalls)
	row("Restricted pods", "%d ingress, %d egress, %d external, on this host", s.Restricted.Ingress, s.Restricted.Egress, s.Restricted.External)
	for _, egress := range s.EgressIPs {
		row("Egress IP", "%s, of %s", egress.Address, cmp.Or(strings.Join(egress.Projects, ", "), "no project"))
	}
	fmt.Fprintln(table, "\t")
	fmt.Fprintln(table, "HOST\tADDRESS\tSUBNET\tPATH\tRESPONDS")
	for _, peer := range s.Peers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%t\n", peer.Name, peer.Address, cmp.Or(peer.Subnet, "-"), peer.Path, peer.Problem == "")
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, peer := range s.Peers {
		if peer.Problem != "" {
			fmt.Fprintf(out, "\nhost %s: %s\n", peer.Name, peer.Problem)
		}
	}
	for _, c := range s.Components {
		if problem := cmp.Or(c.Error, c.Note); problem != "" {
			fmt.Fprintf(out, "\n%s: %s\n", c.Name, problem)
		}
	}
	return nil
}

// device describes the VXLAN device.
func (s networkState) device() string {
	if s.VXLANDevice == "" {
		return ""
	}
	return fmt.Sprintf(", device %s, UDP port %d", s.VXLANDevice, s.VXLANPort)
}
