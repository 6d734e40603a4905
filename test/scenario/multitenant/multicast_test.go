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

// groups contains the multicast addresses and ports to which pods send.
var groups = []string{"239.1.2.3:5000", "[ff05::1:3]:5000"}

// member is a pod that has joined the multicast groups.
type member struct {
	tenant
	pod       string
	listeners map[string]*net.UDPConn // by group
}

// join makes all of a tenant's pods join the groups.
func (t tenant) join(test *testing.T) (members []member) {
	test.Helper()
	for _, pod := range pods() {
		m := member{t, pod, map[string]*net.UDPConn{}}
		err := t.inPod(pod, func() error {
			device, err := net.InterfaceByName("eth0")
			if err != nil {
				return err
			}
			for _, group := range groups {
				listener, err := net.ListenMulticastUDP("udp", device, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(group)))
				if err != nil {
					return err
				}
				test.Cleanup(func() { listener.Close() })
				m.listeners[group] = listener
			}
			return nil
		})
		if err != nil {
			test.Fatal(err)
		}
		members = append(members, m)
	}
	return members
}

// send sends the pod's name to a group.
func (m member) send(group string) error {
	return m.inPod(m.pod, func() error {
		conn, err := net.Dial("udp", group)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(m.marker(m.pod)))
		return err
	})
}

// received returns the senders of the datagrams to a group that have arrived. It omits the pod
// itself, because the pod's kernel loops back its own datagrams.
func (m member) received(group string) map[string]bool {
	senders := map[string]bool{}
	for buffer := make([]byte, 256); ; {
		_ = m.listeners[group].SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		size, _, err := m.listeners[group].ReadFrom(buffer)
		if err != nil {
			delete(senders, m.marker(m.pod))
			return senders
		}
		senders[string(buffer[:size])] = true
	}
}

// exchange waits until each pod receives exactly the packets from the pods that share its number,
// over both IP families. numbers contains the number of each tenant. Pods with the number 0 receive
// nothing.
func (s tenants) exchange(members []member, numbers map[string]int) {
	for _, group := range groups {
		s.WaitFor(fmt.Sprintf("multicast to %s with the numbers %v", group, numbers), func(context.Context) error {
			return exchange(members, group, numbers)
		})
	}
}

// exchange sends a packet from each pod to a group, and compares the received packets.
func exchange(members []member, group string, numbers map[string]int) error {
	for _, m := range members {
		if err := m.send(group); err != nil {
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
		if got := slices.Sorted(maps.Keys(to.received(group))); !slices.Equal(got, want) {
			return fmt.Errorf("%s receives packets from %q, want %q", to.marker(to.pod), got, want)
		}
	}
	return nil
}

// multicast enables or disables multicast as the guide does.
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

	// Joined projects form one group if multicast is enabled in all of them.
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
