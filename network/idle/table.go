package idle

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"sigs.k8s.io/knftables"
)

// priority is that of our chains: before the service proxy's, which rewrites at -100 and judges later. nft before 1.0.8 knows names of
// priorities at some hooks only.
const priority = "-110"

// addressSet has the addresses and ports of idle services.
const addressSet = "addresses"

// write replaces the table by one that redirects connections to the addresses to a port of the host.
func write(ctx context.Context, name string, port int, addresses map[netip.AddrPort]target) error {
	nft, err := knftables.New(knftables.IPv4Family, name)
	if err != nil {
		return fmt.Errorf("open nftables table %q: %w (install the package nftables)", name, err)
	}
	tx := nft.NewTransaction()
	tx.Add(&knftables.Table{})
	tx.Delete(&knftables.Table{})
	tx.Add(&knftables.Table{})
	tx.Add(&knftables.Set{Name: addressSet, Type: "ipv4_addr . inet_service"})
	for address := range addresses {
		tx.Add(&knftables.Element{Set: addressSet, Key: []string{address.Addr().String(), strconv.Itoa(int(address.Port()))}})
	}
	for chain, hook := range map[string]knftables.BaseChainHook{"prerouting": knftables.PreroutingHook, "output": knftables.OutputHook} {
		kind, first := knftables.NATType, knftables.BaseChainPriority(priority)
		tx.Add(&knftables.Chain{Name: chain, Type: &kind, Hook: &hook, Priority: &first})
		tx.Add(&knftables.Rule{Chain: chain, Rule: fmt.Sprintf("ip daddr . tcp dport @%s redirect to :%d", addressSet, port)})
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("write nftables table %q: %w", name, err)
	}
	return nil
}
