package multitenant

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// groups maps the networks of package net to the multicast addresses and ports that the pods send
// to.
var groups = map[string]string{"udp4": "239.1.2.3:5000", "udp6": "[ff05::1:3]:5000"}

// member is a pod that has joined the multicast groups.
type member struct {
	tenant
	pod       string
	listeners map[string]*net.UDPConn // by network
}

// join makes all of a tenant's pods join the groups.
func (t tenant) join(test *testing.T) (members []member) {
	test.Helper()
	for _, pod := range pods() {
		m := member{t, pod, map[string]*net.UDPConn{}}
		for network, group := range groups {
			err := t.inPod(pod, func() error {
				device, err := net.InterfaceByName("eth0")
				if err == nil {
					m.listeners[network], err = net.ListenMulticastUDP(network, device, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(group)))
				}
				return err
			})
			if err != nil {
				test.Fatal(err)
			}
			test.Cleanup(func() { m.listeners[network].Close() })
		}
		members = append(members, m)
	}
	return members
}

// send sends the pod's name to the network's group.
func (m member) send(network string) error {
	return m.inPod(m.pod, func() error {
		conn, err := net.Dial(network, groups[network])
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(m.marker(m.pod)))
		return err
	})
}

// received returns the names of the pods whose datagrams to the network's group have arrived. It
// omits the pod itself, because the kernel loops back the pod's own datagrams.
func (m member) received(network string) map[string]bool {
	senders := map[string]bool{}
	for buffer := make([]byte, 256); ; {
		_ = m.listeners[network].SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		size, _, err := m.listeners[network].ReadFrom(buffer)
		if err != nil {
			delete(senders, m.marker(m.pod))
			return senders
		}
		senders[string(buffer[:size])] = true
	}
}

// exchange waits until each pod receives packets from exactly the pods in its group, over both IP
// families. numbers maps each tenant's namespace to its group's number. Pods with the number 0
// receive no packets.
func (s tenants) exchange(members []member, numbers map[string]int) {
	for network, group := range groups {
		s.WaitFor(fmt.Sprintf("multicast to %s in the groups %v", group, numbers), func(context.Context) error {
			return exchange(members, network, numbers)
		})
	}
}

// exchange sends a packet from each pod to the network's group, and compares the received packets.
func exchange(members []member, network string, numbers map[string]int) error {
	for _, m := range members {
		if err := m.send(network); err != nil {
			return err
		}
	}
	for _, to := range members {
		var want []string
		for _, from := range members {
			isSelf := from.Namespace == to.Namespace && from.pod == to.pod
			if number := numbers[from.Namespace]; number != 0 && number == numbers[to.Namespace] && !isSelf {
				want = append(want, from.marker(from.pod))
			}
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(to.received(network))); !slices.Equal(got, want) {
			return fmt.Errorf("%s receives packets from %q, want %q", to.marker(to.pod), got, want)
		}
	}
	return nil
}

// multicast enables or disables multicast with the guide's annotation.
func (t tenant) multicast(enabled bool) {
	value := "=true"
	if !enabled {
		value = "-"
	}
	t.OC("annotate", "netnamespace", t.Namespace, "netnamespace.network.openshift.io/multicast-enabled"+value)
}

func TestMulticastStaysInTheNetwork(t *testing.T) {
	s := sharedTenants(t)
	members := append(s.blue.join(t), s.red.join(t)...)
	blue, red := s.blue.Namespace, s.red.Namespace
	s.exchange(members, nil) // multicast is disabled by default
	s.blue.multicast(true)
	s.exchange(members, map[string]int{blue: 1})
	s.red.multicast(true)
	s.exchange(members, map[string]int{blue: 1, red: 2})

	// Joined projects form one group, provided that multicast is enabled in all of them.
	s.podNetwork("join-projects", "--to="+blue, red)
	s.exchange(members, map[string]int{blue: 1, red: 1})
	s.red.multicast(false)
	s.exchange(members, nil)

	// A global project shares a group only with other global projects, such as default.
	s.podNetwork("make-projects-global", red)
	s.red.multicast(true)
	s.exchange(members, map[string]int{blue: 1})
	other := tenant{Cluster: s.In("default")}
	other.multicast(true)
	t.Cleanup(func() { other.multicast(false) })
	s.exchange(members, map[string]int{blue: 1, red: 2})
	s.podNetwork("isolate-projects", red)
	s.red.multicast(false)
	s.blue.multicast(false)
	s.exchange(members, nil)
}

func TestMulticastIgnoresNetworkPolicies(t *testing.T) {
	s := sharedTenants(t)
	s.setPlugin(t, networkplugin.Multitenant, networkplugin.NetworkPolicy)
	t.Cleanup(func() { s.setPlugin(t, networkplugin.NetworkPolicy, networkplugin.Multitenant) })
	members := append(s.blue.join(t), s.red.join(t)...)
	s.blue.multicast(true)
	s.red.multicast(true)
	s.blue.Apply(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: deny-all}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
`)
	s.red.Apply(`
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: allow-all}
spec: {podSelector: {}, ingress: [{from: [{namespaceSelector: {}}]}]}
`)
	r := request{s.blue, "near", s.blue.addresses("far", "")[0], ""}
	s.WaitFor("isolation by the policy", func(context.Context) error {
		if r.send() == nil {
			return fmt.Errorf("%s gets a response", r)
		}
		return nil
	})
	s.exchange(members, map[string]int{s.blue.Namespace: 1, s.red.Namespace: 2})
}
