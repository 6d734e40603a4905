package multitenant

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/internal/bigiptest"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/netnamespace"
	"github.com/slipway-platform/slipway/internal/vxlanpacket"
	"github.com/slipway-platform/slipway/test/kit"
)

// appliance is a simulated F5 BIG-IP. Its machine is on the network segment of the first two hosts.
type appliance struct {
	*bigiptest.Appliance
	machine *kit.Machine
}

// newAppliance starts an appliance. network, if set, configures the appliance's machine.
func (s tenants) newAppliance(t *testing.T, network func(machine *kit.Machine, n bigiptest.Network) error) appliance {
	t.Helper()
	machine := s.Neighbor()
	options := bigiptest.Options{Listen: machine.Listen, Dial: machine.Dial, Host: machine.Address.String()}
	if network != nil {
		options.Network = func(n bigiptest.Network) {
			if err := network(machine, n); err != nil {
				t.Errorf("configure network of the appliance: %v", err)
			}
		}
	}
	return appliance{bigiptest.New(t, options), machine}
}

// install installs a router of type f5-router for the appliance, and waits until the router is
// ready.
func (s tenants) install(t *testing.T, a appliance, args ...string) {
	t.Helper()
	t.Cleanup(func() {
		s.OC("delete", "clusterrolebinding", "router-f5-role", "router-f5-sdn-reader", "--ignore-not-found")
	})
	s.OC(append([]string{"adm", "router", "f5", "--type=f5-router", "--external-host=" + a.Management, "--external-host-username=" + bigiptest.User,
		"--external-host-password=" + bigiptest.Password, "--external-host-insecure"}, args...)...)
	s.OC("rollout", "status", "dc/f5", "--timeout=180s")
}

// get requests a page from the appliance. It returns the body, or the target of a redirect. For
// https URLs, it verifies that the certificate is valid for the host and signed by authority.
func (a appliance) get(url string, authority *certtest.Authority) (string, error) {
	address := a.HTTP
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.machine.Dial(ctx, "tcp", address)
	}}
	if strings.HasPrefix(url, "https:") {
		address = a.HTTPS
		transport.TLSClientConfig = &tls.Config{RootCAs: authority.Pool()}
	}
	client := http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	page, err := io.ReadAll(response.Body)
	if location := response.Header.Get("Location"); location != "" {
		return location, err
	}
	return string(page), err
}

// waitPage waits until the appliance's response contains the given text.
func (s tenants) waitPage(a appliance, url string, authority *certtest.Authority, want string) {
	s.WaitFor(url+" through the appliance", func(context.Context) error {
		page, err := a.get(url, authority)
		if err == nil && !strings.Contains(page, want) {
			err = fmt.Errorf("the response is %q, want %q", page, want)
		}
		return err
	})
}

// connectVXLAN configures a machine's VXLAN device according to the appliance's configuration: the
// device has its own address, and sends ARP requests to all endpoints.
func connectVXLAN(machine *kit.Machine, n bigiptest.Network) error {
	if !n.Gateway.IsValid() {
		return nil
	}
	return machine.Do(func() error {
		link, err := netlinksafe.LinkByName("vxlan5000")
		if err != nil {
			attributes := netlink.NewLinkAttrs()
			attributes.Name, attributes.MTU = "vxlan5000", 1450
			device := &netlink.Vxlan{LinkAttrs: attributes, VxlanId: n.ID, Port: vxlanPort, SrcAddr: n.Local.AsSlice(), Learning: true}
			if err := errors.Join(netlink.LinkAdd(device), netnamespace.SetUp("vxlan5000", n.Gateway)); err != nil {
				return err
			}
			if link, err = netlinksafe.LinkByName("vxlan5000"); err != nil {
				return err
			}
		}
		for _, endpoint := range n.Endpoints {
			err := netlink.NeighAppend(&netlink.Neigh{
				LinkIndex: link.Attrs().Index, Family: unix.AF_BRIDGE, Flags: netlink.NTF_SELF, State: netlink.NUD_PERMANENT,
				HardwareAddr: make(net.HardwareAddr, 6), IP: endpoint.AsSlice(),
			})
			if err != nil && !errors.Is(err, unix.EEXIST) {
				return fmt.Errorf("add endpoint %s: %w", endpoint, err)
			}
		}
		return nil
	})
}

// ghost is the HostSubnet that represents the appliance.
const ghost = `
apiVersion: network.openshift.io/v1
kind: HostSubnet
metadata:
  name: appliance
  annotations:
    pod.network.openshift.io/assign-subnet: "true"
    pod.network.openshift.io/fixed-vnid-host: "0"
host: appliance
hostIP: %s
`

// createGhost creates the appliance's HostSubnet. It returns the appliance's address in that
// subnet.
func (s tenants) createGhost(t *testing.T, a appliance) netip.Prefix {
	t.Helper()
	s.Apply(fmt.Sprintf(ghost, a.machine.Address))
	t.Cleanup(func() { s.OC("delete", "hostsubnet", "appliance") })
	var subnet netip.Prefix
	s.WaitFor("subnet of the appliance", func(context.Context) (err error) {
		subnet, err = netip.ParsePrefix(strings.TrimSpace(s.OC("get", "hostsubnet", "appliance", "-o", "jsonpath={.subnet}")))
		return err
	})
	return netip.PrefixFrom(subnet.Addr().Next(), 14)
}

// stealHost creates a route in the red tenant's project for a host that belongs to the blue tenant.
// The new route is at least one second newer, because routes that are created in the same second
// have no defined order.
func (s tenants) stealHost() {
	age := func(t tenant, route string) string {
		return t.OC("get", "route", route, "-o", "jsonpath={.metadata.creationTimestamp}")
	}
	s.WaitFor("younger route", func(context.Context) error {
		s.red.OC("expose", "service", "near", "--name=thief", "--hostname=near."+s.blue.Namespace+".example.com")
		if age(s.red, "thief") == age(s.blue, "near") {
			s.red.OC("delete", "route", "thief")
			return errors.New("both routes were created in the same second")
		}
		return nil
	})
}

// createEdge creates an edge route with a certificate signed by a new CA, and returns the CA.
func (s tenants) createEdge(t *testing.T) *certtest.Authority {
	t.Helper()
	authority := certtest.New(t)
	pair := authority.Issue(t, "edge", "edge.appliance.example.com")
	s.OC("create", "route", "edge", "edge", "--service=near", "--hostname=edge.appliance.example.com", "--insecure-policy=Redirect", "--cert="+pair.CertFile, "--key="+pair.KeyFile)
	return authority
}

func TestApplianceReachesPodsNatively(t *testing.T) {
	s := newTenants(t)
	a := s.newAppliance(t, connectVXLAN)
	gateway := s.createGhost(t, a)
	for _, tenant := range []tenant{s.blue, s.red} {
		for _, pod := range pods() {
			tenant.OC("expose", "service", pod, "--hostname="+pod+"."+tenant.Namespace+".example.com", "--path=/index.html")
		}
	}
	s.stealHost()
	authority := s.createEdge(t)
	s.install(t, a, "--external-host-partition-path=/Common/openshift", "--external-host-http-vserver="+bigiptest.HTTPServer,
		"--external-host-https-vserver="+bigiptest.HTTPSServer, "--external-host-internal-ip="+a.machine.Address.String(), "--external-host-vxlan-gw="+gateway.String())

	// An appliance with network ID 0 must reach isolated projects on all hosts.
	for _, tenant := range []tenant{s.blue, s.red} {
		for _, pod := range pods() {
			s.waitPage(a, "http://"+pod+"."+tenant.Namespace+".example.com/index.html", nil, "I am "+tenant.marker(pod))
		}
	}
	s.waitPage(a, "http://edge.appliance.example.com/x", nil, "https://edge.appliance.example.com/x")
	s.waitPage(a, "https://edge.appliance.example.com/", authority, s.blue.marker("near"))
	s.checkWire(t, a, gateway.Addr())
	s.checkStatus(t)

	// A new router must not change anything when it starts. With its first change, it must restore
	// objects that the appliance has lost.
	a.Changes()
	s.OC("delete", "pod", "-l", "deploymentconfig=f5")
	s.OC("rollout", "status", "dc/f5", "--timeout=180s")
	s.waitRouterReady()
	for _, change := range a.Changes() {
		// Ignore the pool of the router's own service, because its member is the new router pod.
		if !strings.Contains(change, " ltm/pool") && !strings.Contains(change, " ltm/node") {
			t.Errorf("after a restart, the router sent %q", change)
		}
	}
	a.Reset()
	s.OC("create", "route", "edge", "more", "--service=far", "--hostname=more.appliance.example.com", "--insecure-policy=Allow")
	s.waitPage(a, "http://more.appliance.example.com/", nil, s.blue.marker("far"))
	s.waitPage(a, "https://edge.appliance.example.com/", authority, s.blue.marker("near"))

	s.OC("delete", "route", "more", "far")
	s.OC("delete", "service", "far")
	s.WaitFor("removal of the pool", func(context.Context) error {
		for _, pool := range a.Names("ltm/pool") {
			if strings.HasSuffix(pool, "/openshift_"+s.Namespace+"_far") {
				return fmt.Errorf("the appliance has the pools %q", a.Names("ltm/pool"))
			}
		}
		return nil
	})
	if log := s.OC("logs", "dc/f5"); strings.Contains(log, bigiptest.Password) {
		t.Errorf("the log of the router contains the password:\n%s", log)
	}
}

// waitRouterReady waits until the router's only pod is ready.
func (s tenants) waitRouterReady() {
	s.WaitFor("ready router", func(context.Context) error {
		if ready := s.OC("get", "pods", "-l", "deploymentconfig=f5", "-o", `jsonpath={range .items[*]}{.status.conditions[?(@.type=="Ready")].status}{end}`); ready != "True" {
			return fmt.Errorf("the readiness of the pods is %q", ready)
		}
		return nil
	})
}

// checkWire checks that packets between the appliance and the distant host are encapsulated in
// VXLAN with network ID 0 in both directions.
func (s tenants) checkWire(t *testing.T, a appliance, gateway netip.Addr) {
	t.Helper()
	capture, err := s.distant.Capture()
	if err != nil {
		t.Fatal(err)
	}
	defer capture.Close()
	pod := s.red.address(distant)
	if _, err := a.get("http://distant."+s.red.Namespace+".example.com/index.html", nil); err != nil {
		t.Fatal(err)
	}
	for _, way := range [][2]netip.Addr{{gateway, pod}, {pod, gateway}} {
		packet, err := capture.Next(vxlanPort, func(p vxlanpacket.Packet) bool { return p.Source == way[0] && p.Target == way[1] })
		if err != nil || packet.VNI != 0 {
			t.Errorf("packet from %s to %s has the network ID %d: %v", way[0], way[1], packet.VNI, err)
		}
	}
}

// checkStatus compares the router's admission decisions with the decisions of the router on the
// nodes.
func (s tenants) checkStatus(t *testing.T) {
	t.Helper()
	const format = `jsonpath={range .status.ingress[?(@.routerName=="%s")]}{.host} {.conditions[0].status} {.conditions[0].reason} {.conditions[0].message}{end}`
	for name, tenant := range map[string]tenant{"near": s.blue, "distant": s.red, "thief": s.red} {
		s.WaitFor("decision about route "+name, func(context.Context) error {
			f5, public := tenant.OC("get", "route", name, "-o", fmt.Sprintf(format, "f5")), tenant.OC("get", "route", name, "-o", fmt.Sprintf(format, "public"))
			if f5 == "" || f5 != public || (name == "thief") != strings.Contains(f5, "HostAlreadyClaimed") {
				return fmt.Errorf("the routers decide %q and %q", f5, public)
			}
			return nil
		})
	}
}
