package ingressip

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/slipway-platform/slipway/controller"
)

// pool is who has which address. It is derived from the services, and only one goroutine uses it.
type pool struct {
	network netip.Prefix
	owners  map[netip.Addr]controller.Key
	of      map[controller.Key]netip.Addr
	// wanting are services that got none, and last is the address that was given last.
	wanting map[controller.Key]bool
	last    netip.Addr
}

func newPool(network netip.Prefix) *pool {
	return &pool{
		network: network.Masked(), owners: map[netip.Addr]controller.Key{}, of: map[controller.Key]netip.Addr{}, wanting: map[controller.Key]bool{},
		last: network.Masked().Addr(),
	}
}

// holds says whether text is an address of the pool's network.
func (p *pool) holds(text string) bool {
	address, err := netip.ParseAddr(text)
	return err == nil && p.network.Contains(address)
}

// owns says whether a service has an address.
func (p *pool) owns(key controller.Key) bool { return p.of[key].IsValid() }

// usable says whether an address can be given: it is neither the network's first nor its last one.
func (p *pool) usable(address netip.Addr) bool {
	return p.network.Contains(address) && address != p.network.Addr() && p.network.Contains(address.Next())
}

// claim makes a service the owner of an address, unless another one is or it cannot be given.
func (p *pool) claim(key controller.Key, address netip.Addr) bool {
	if owner, taken := p.owners[address]; taken && owner != key || !p.usable(address) {
		return false
	}
	p.drop(key)
	p.owners[address], p.of[key] = key, address
	delete(p.wanting, key)
	return true
}

// allocate gives a service the address that it wishes, or else the next one after the last that is free: one that was just released rests. It
// returns none if all are taken, and notes the service.
func (p *pool) allocate(key controller.Key, wish netip.Addr) netip.Addr {
	if had := p.of[key]; had.IsValid() {
		return had // and was not written
	}
	if wish.IsValid() && p.claim(key, wish) {
		return wish
	}
	for address := p.after(p.last); ; address = p.after(address) {
		if p.claim(key, address) {
			p.last = address
			return address
		}
		if address == p.last {
			p.wanting[key] = true
			return netip.Addr{}
		}
	}
}

// after is the next address, in a circle.
func (p *pool) after(address netip.Addr) netip.Addr {
	if next := address.Next(); p.network.Contains(next) {
		return next
	}
	return p.network.Addr()
}

// release makes a service's address free. It returns the services that wait for one.
func (p *pool) release(key controller.Key) (waiting []controller.Key) {
	delete(p.wanting, key)
	if !p.drop(key) {
		return nil
	}
	return slices.Collect(maps.Keys(p.wanting))
}

func (p *pool) drop(key controller.Key) bool {
	address, had := p.of[key]
	delete(p.owners, address)
	delete(p.of, key)
	return had
}
