package multitenant

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

// egressRouter is the guide's egress router on the second host, with additional IPv6 addresses and
// a service.
const egressRouter = `
apiVersion: v1
kind: Pod
metadata:
  name: egress
  labels: {name: egress}
  annotations: {pod.network.openshift.io/assign-macvlan: "true"}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  initContainers:
  - name: egress-router
    image: openshift3/ose-egress-router
    securityContext: {privileged: true}
    env:
    - {name: EGRESS_SOURCE, value: "192.168.12.99/24,2001:db8:12::99/64"}
    - {name: EGRESS_GATEWAY, value: "192.168.12.1,2001:db8:12::1"}
    - {name: EGRESS_DESTINATION, value: "203.0.113.25\n2001:db8:25::25"}
    - {name: EGRESS_ROUTER_MODE, value: init}
  containers:
  - name: egress-router-wait
    image: openshift3/ose-pod
---
apiVersion: v1
kind: Service
metadata: {name: egress}
spec: {ipFamilyPolicy: RequireDualStack, selector: {name: egress}, ports: [{port: 80}]}
`

// TestEgressRouterServesPodsOnAllHosts connects from pods on all hosts to a server outside the
// cluster, over both IP families. The server must receive the connections from the egress router's
// own address. The egress router must be isolated like other pods. The administrator's iptables
// rules do not apply to it.
func TestEgressRouterServesPodsOnAllHosts(t *testing.T) {
	s := sharedTenants(t)
	listener, err := s.Neighbor("192.168.12.1/24", "203.0.113.25/32", "2001:db8:12::1/64", "2001:db8:25::25/128").Listen("tcp", ":80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		client, _, _ := net.SplitHostPort(r.RemoteAddr)
		fmt.Fprintf(w, "%s to %s\n", client, r.Context().Value(http.LocalAddrContextKey))
	})}
	done := make(chan struct{})
	go func() { _ = server.Serve(listener); close(done) }()
	t.Cleanup(func() { server.Close(); <-done })

	deny(t, s.second, "iptables-nft", "203.0.113.25")
	deny(t, s.second, "ip6tables-nft", "2001:db8:25::25")
	s.blue.Apply(fmt.Sprintf(egressRouter, second))
	router := s.blue.WaitPodRunning("egress").Status.PodIP
	service := s.blue.OC("get", "service", "egress", "-o", "jsonpath={.spec.clusterIP}")
	for address, want := range map[string]string{
		router: egressPage, service: egressPage,
		s.blue.second6("egress").String(): egressPage6, s.blue.clusterIP6(t, "egress").String(): egressPage6,
	} {
		for _, pod := range pods() {
			s.expect(request{s.blue, pod, net.JoinHostPort(address, "80"), want}, true)
		}
		s.expect(request{s.red, distant, net.JoinHostPort(address, "80"), " to "}, false)
	}
}

// These texts are parts of the server's pages for clients with the egress router's addresses.
const (
	egressPage  = "192.168.12.99 to 203.0.113.25:80"
	egressPage6 = "2001:db8:12::99 to [2001:db8:25::25]:80"
)
