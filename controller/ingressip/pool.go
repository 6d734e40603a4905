package ingressip

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/controller"
)

// pool tracks which service owns which address. It is derived from the services. It is not safe for
// concurrent use.
type pool struct {
	network   netip.Prefix
	owners    map[netip.Addr]controller.Key
	addresses map[controller.Key]netip.Addr
	// waiting holds the services that are waiting for an address. last is the last allocated address.
	waiting map[controller.Key]bool
	last    netip.Addr
}

func newPool(network netip.Prefix) *pool {
	return &pool{
		network: network.Masked(), owners: map[netip.Addr]controller.Key{}, addresses: map[controller.Key]netip.Addr{}, waiting: map[controller.Key]bool{},
		last: network.Masked().Addr(),
	}
}

// contains reports whether text is an IP address in the pool's network.
func (p *pool) contains(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && p.network.Contains(address)
}

// hasAddress reports whether a service has an address.
func (p *pool) hasAddress(key controller.Key) bool { return p.addresses[key].IsValid() }

// usable reports whether an address is in the network and is neither the network's first nor its
// last address.
func (p *pool) usable(address netip.Addr) bool {
	return p.network.Contains(address) && address != p.network.Addr() && p.network.Contains(address.Next())
}

// claim makes a service the owner of an address. It returns false if the address is not usable or
// is owned by another service.
func (p *pool) claim(key controller.Key, address netip.Addr) bool {
	if owner, hasOwner := p.owners[address]; hasOwner && owner != key || !p.usable(address) {
		return false
	}
	p.remove(key)
	p.owners[address], p.addresses[key] = key, address
	delete(p.waiting, key)
	return true
}

// allocate returns the requested address if it is free. Otherwise, it returns the next free address
// after the last allocated address, so that a released address is reused as late as possible. If no
// address is free, allocate returns an invalid address and adds the service to the waiting
// services.
func (p *pool) allocate(key controller.Key, requested netip.Addr) netip.Addr {
	if existing := p.addresses[key]; existing.IsValid() {
		return existing // allocated earlier, but not written yet
	}
	if requested.IsValid() && p.claim(key, requested) {
		return requested
	}
	for address := p.next(p.last); ; address = p.next(address) {
		if p.claim(key, address) {
			p.last = address
			return address
		}
		if address == p.last {
			p.waiting[key] = true
			return netip.Addr{}
		}
	}
}

// next returns the address that follows the given address. It wraps around at the end of the
// network.
func (p *pool) next(address netip.Addr) netip.Addr {
	if next := address.Next(); p.network.Contains(next) {
		return next
	}
	return p.network.Addr()
}

// release releases a service's address and returns the waiting services.
func (p *pool) release(key controller.Key) (waiting []controller.Key) {
	delete(p.waiting, key)
	if !p.remove(key) {
		return nil
	}
	return slices.Collect(maps.Keys(p.waiting))
}

func (p *pool) remove(key controller.Key) bool {
	address, exists := p.addresses[key]
	delete(p.owners, address)
	delete(p.addresses, key)
	return exists
}
