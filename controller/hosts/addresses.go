package hosts

import (
	"net/netip"
	"sync"

	"k8s.io/apimachinery/pkg/labels"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// Addresses contains the addresses of all hosts in the cluster. It is empty until the API server in
// this process is running. A nil *Addresses is also empty.
type Addresses struct {
	mutex sync.Mutex
	nodes corelisters.NodeLister
}

func (a *Addresses) set(nodes corelisters.NodeLister) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.nodes = nodes
}

// List returns the addresses of all nodes.
func (a *Addresses) List() (addresses []netip.Addr) {
	if a == nil {
		return nil
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.nodes == nil {
		return nil
	}
	nodes, err := a.nodes.List(labels.Everything())
	if err != nil {
		return nil // does not happen, because the lister reads a cache
	}
	for _, node := range nodes {
		for _, status := range node.Status.Addresses {
			if address, err := netip.ParseAddr(status.Address); err == nil {
				addresses = append(addresses, address.Unmap())
			}
		}
	}
	return addresses
}
