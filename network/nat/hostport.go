package nat

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"sigs.k8s.io/knftables"

	"github.com/slipway-platform/slipway/network/ipfamily"
)

// Port is a host port that is forwarded to a pod.
type Port struct {
	// HostAddress is an address of the host. The zero value means all addresses, and an unspecified
	// address means all addresses of its family.
	HostAddress   netip.Addr `json:"hostAddress,omitzero"`
	HostPort      uint16     `json:"hostPort"`
	ContainerPort uint16     `json:"containerPort"`
	Protocol      string     `json:"protocol"` // tcp, udp or sctp
}

// String returns "[<host address>:]<host port>/<protocol>", such as "192.0.2.1:8080/tcp".
func (p Port) String() string {
	if p.HostAddress.IsValid() {
		return netip.AddrPortFrom(p.HostAddress, p.HostPort).String() + "/" + p.Protocol
	}
	return strconv.Itoa(int(p.HostPort)) + "/" + p.Protocol
}

// LeadsTo reports whether the port is forwarded to a pod's address. A port whose host address is in
// the other IP family is not forwarded to it.
func (p Port) LeadsTo(pod netip.Addr) bool {
	return !p.HostAddress.IsValid() || ipfamily.Of(p.HostAddress) == ipfamily.Of(pod)
}

// ErrTaken means that another pod uses the host port.
var ErrTaken = errors.New("another pod uses the host port")

// Publish forwards host ports to a pod's address. It ignores ports whose host address is in the
// other IP family. In the address's IP family, it replaces existing elements of the owner, and of
// owners that no longer exist. If a live owner uses one of the ports, it returns ErrTaken and
// changes nothing.
//
// Calls to Publish and Unpublish for the same table must not overlap, so callers must hold a lock.
func Publish(ctx context.Context, table, owner string, pod netip.Addr, ports []Port, alive func(owner string) bool) error {
	ports = slices.DeleteFunc(slices.Clone(ports), func(p Port) bool { return !p.LeadsTo(pod) })
	if len(ports) == 0 {
		return nil
	}
	nft, err := open(ipfamily.Of(pod), table)
	if err != nil {
		return err
	}
	existing, err := elements(ctx, nft)
	if err != nil {
		return fmt.Errorf("list host ports of nftables table %q: %w", table, err)
	}

	tx := nft.NewTransaction()
	desired := []*knftables.Element{{Set: hairpinSet, Key: []string{pod.String(), pod.String()}, Comment: &owner}}
	for _, port := range ports {
		desired = append(desired, portElement(port, pod, owner))
	}
	for _, e := range existing {
		holder := ownerOf(e)
		clash := slices.IndexFunc(desired, func(w *knftables.Element) bool { return sameKey(w, e) })
		if clash >= 0 && holder != owner && alive(holder) {
			return fmt.Errorf("publish host port %s: %w: %s", strings.Join(e.Key, " "), ErrTaken, holder)
		}
		if clash >= 0 || holder == owner {
			tx.Delete(e)
		}
	}
	for _, e := range desired {
		tx.Add(e)
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("publish host ports of %q: %w", owner, err)
	}
	return nil
}

// Unpublish removes all host ports of an owner in the given IP families. It returns no error if the
// owner has no ports or the table is missing.
func Unpublish(ctx context.Context, table, owner string, families ...ipfamily.Family) error {
	var errs []error
	for _, family := range families {
		errs = append(errs, unpublish(ctx, family, table, owner))
	}
	return errors.Join(errs...)
}

func unpublish(ctx context.Context, family ipfamily.Family, table, owner string) error {
	nft, err := open(family, table)
	if err != nil {
		return err
	}
	existing, err := elements(ctx, nft)
	if knftables.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("list host ports of nftables table %q: %w", table, err)
	}
	tx := nft.NewTransaction()
	for _, e := range existing {
		if ownerOf(e) == owner {
			tx.Delete(e)
		}
	}
	if tx.NumOperations() == 0 {
		return nil
	}
	if err := nft.Run(ctx, tx); err != nil {
		return fmt.Errorf("unpublish host ports of %q: %w", owner, err)
	}
	return nil
}

// Owners returns the number of host ports of each owner in the given IP families. A port that
// exists in both families is counted twice. A table that does not exist has no owners.
func Owners(ctx context.Context, table string, families ...ipfamily.Family) (map[string]int, error) {
	owners := map[string]int{}
	for _, family := range families {
		nft, err := open(family, table)
		if err != nil {
			return nil, err
		}
		existing, err := elements(ctx, nft)
		if err != nil && !knftables.IsNotFound(err) {
			return nil, fmt.Errorf("list host ports of nftables table %q: %w", table, err)
		}
		for _, e := range existing {
			owner := ownerOf(e)
			if _, ok := owners[owner]; !ok {
				owners[owner] = 0
			}
			if e.Map != "" {
				owners[owner]++
			}
		}
	}
	return owners, nil
}

func elements(ctx context.Context, nft knftables.Interface) ([]*knftables.Element, error) {
	var all []*knftables.Element
	for _, object := range []struct{ kind, name string }{{"map", anyAddressMap}, {"map", oneAddressMap}, {"set", hairpinSet}} {
		elems, err := nft.ListElements(ctx, object.kind, object.name)
		if err != nil {
			return nil, err
		}
		all = append(all, elems...)
	}
	return all, nil
}

func portElement(p Port, pod netip.Addr, owner string) *knftables.Element {
	e := &knftables.Element{
		Map:     anyAddressMap,
		Key:     []string{p.Protocol, strconv.Itoa(int(p.HostPort))},
		Value:   []string{pod.String(), strconv.Itoa(int(p.ContainerPort))},
		Comment: &owner,
	}
	if p.HostAddress.IsValid() && !p.HostAddress.IsUnspecified() {
		e.Map = oneAddressMap
		e.Key = append([]string{p.HostAddress.String()}, e.Key...)
	}
	return e
}

func ownerOf(e *knftables.Element) string {
	if e.Comment == nil {
		return ""
	}
	return *e.Comment
}

func sameKey(a, b *knftables.Element) bool {
	return a.Map == b.Map && a.Set == b.Set && slices.Equal(a.Key, b.Key)
}
