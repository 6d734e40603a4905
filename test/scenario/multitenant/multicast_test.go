package multitenant

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/networkplugin"
)

// group is the multicast address and port that the pods send to.
const group = "239.1.2.3:5000"

// member is a pod that has joined the multicast group.
type member struct {
	tenant
	pod      string
	listener *net.UDPConn
}

// join makes all of a tenant's pods join the group.
func (t tenant) join(test *testing.T) (members []member) {
	test.Helper()
	for _, pod := range pods() {
		m := member{t, pod, nil}
		err := t.inPod(pod, func() error {
			device, err := net.InterfaceByName("eth0")
			if err == nil {
				m.listener, err = net.ListenMulticastUDP("udp4", device, net.UDPAddrFromAddrPort(netip.MustParseAddrPort(group)))
			}
			return err
		})
		if err != nil {
			test.Fatal(err)
		}
		test.Cleanup(func() { m.listener.Close() })
		members = append(members, m)
	}
	return members
}

// send sends the pod's name to the group.
func (m member) send() error {
	return m.inPod(m.pod, func() error {
		conn, err := net.Dial("udp4", group)
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Write([]byte(m.marker(m.pod)))
		return err
	})
}

// received returns the names of the pods whose datagrams have arrived. It omits the pod itself,
// because the kernel loops back the pod's own datagrams.
func (m member) received() map[string]bool {
	senders := map[string]bool{}
	for buffer := make([]byte, 256); ; {
		_ = m.listener.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
		size, _, err := m.listener.ReadFrom(buffer)
		if err != nil {
			delete(senders, m.marker(m.pod))
			return senders
		}
		senders[string(buffer[:size])] = true
	}
}

// exchange waits until each pod receives packets from exactly the pods in its group. groups maps
// each tenant's namespace to its group's number. Pods with the number 0 receive no packets.
func (s tenants) exchange(members []member, groups map[string]int) {
	s.WaitFor(fmt.Sprintf("multicast in the groups %v", groups), func(context.Context) error {
		for _, m := range members {
			if err := m.send(); err != nil {
				return err
			}
		}
		for _, to := range members {
			var want, got []string
			for _, from := range members {
				if number := groups[from.Namespace]; number != 0 && number == groups[to.Namespace] && from.listener != to.listener {
					want = append(want, from.marker(from.pod))
				}
			}
			for sender := range to.received() {
				got = append(got, sender)
			}
			slices.Sort(want)
			slices.Sort(got)
			if strings.Join(got, " ") != strings.Join(want, " ") {
				return fmt.Errorf("%s receives packets from %q, want %q", to.marker(to.pod), got, want)
			}
		}
		return nil
	})
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
