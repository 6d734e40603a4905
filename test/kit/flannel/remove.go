package flannel

import (
	"context"
	"errors"
	"fmt"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/test/kit"
)

// Remove removes the remaining devices and tables of flanneld and the CNI plugins from a host.
func Remove(host *kit.Cluster) error {
	return host.Do(func() error {
		var errs []error
		for _, name := range []string{"cni0", "flannel.1"} {
			link, err := netlinksafe.LinkByName(name)
			if errors.As(err, &netlink.LinkNotFoundError{}) {
				continue
			}
			if err == nil {
				err = netlink.LinkDel(link)
			}
			if err != nil {
				errs = append(errs, fmt.Errorf("remove device %q: %w", name, err))
			}
		}
		return errors.Join(append(errs, removeTables())...)
	})
}

// removeTables removes flannel's tables, and the tables that iptables creates for the portmap
// plugin.
func removeTables() error {
	var errs []error
	for family, names := range map[knftables.Family][]string{
		knftables.IPv4Family: {"flannel-ipv4", "nat", "filter"}, knftables.IPv6Family: {"flannel-ipv6", "nat", "filter"},
	} {
		for _, name := range names {
			nft, err := knftables.New(family, name)
			if err != nil {
				return fmt.Errorf("open table %q: %w", name, err)
			}
			transaction := nft.NewTransaction()
			transaction.Delete(&knftables.Table{})
			if err := nft.Run(context.Background(), transaction); err != nil && !knftables.IsNotFound(err) {
				errs = append(errs, fmt.Errorf("remove table %q: %w", name, err))
			}
		}
	}
	return errors.Join(errs...)
}
