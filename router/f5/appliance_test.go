package f5

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/bigiptest"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

// configOf returns a router's configuration for an appliance. variables contains additional
// environment variables.
func configOf(t *testing.T, a *bigiptest.Appliance, variables map[string]string) *Config {
	t.Helper()
	all := map[string]string{
		prefix + "HOSTNAME": a.Management, prefix + "USERNAME": bigiptest.User, prefix + "PASSWORD": bigiptest.Password, prefix + "INSECURE": "true",
		prefix + "HTTP_VSERVER": bigiptest.HTTPServer, prefix + "HTTPS_VSERVER": bigiptest.HTTPSServer,
	}
	for name, value := range variables {
		all[prefix+name] = value
	}
	s, err := environment.Read(all)
	if err != nil {
		t.Fatal(err)
	}
	config, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// shop is a cluster with one namespace, whose services are servers in this process.
type shop struct {
	endpoints map[string][]netip.AddrPort
	servers   int
	authority *certtest.Authority
	serviceCA string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{endpoints: map[string][]netip.AddrPort{}, authority: certtest.New(t)}
	content, err := os.ReadFile(s.authority.File)
	if err != nil {
		t.Fatal(err)
	}
	s.serviceCA = string(content)
	return s
}

// serve starts servers for a service. The servers respond with the service's name. If names are
// given, the servers use TLS with a certificate for the names.
func (s *shop) serve(t *testing.T, service string, count int, names ...string) {
	t.Helper()
	for range count {
		// Each server has its own address, like a pod.
		listener, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", s.servers+1))
		if err != nil {
			t.Fatal(err)
		}
		s.servers++
		handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, service) })
		server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0)}}
		if len(names) > 0 {
			pair := s.authority.Issue(t, service, names...)
			certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
			server.StartTLS()
		} else {
			server.Start()
		}
		t.Cleanup(server.Close)
		s.endpoints[service] = append(s.endpoints[service], server.Listener.Addr().(*net.TCPAddr).AddrPort())
	}
}

// state returns the cluster's state with the given routes.
func (s *shop) state(routes ...*routev1.Route) State {
	source := model.Source{
		Service: func(string, string) *corev1.Service { return nil },
		Slices: func(_, name string) (slices []*discoveryv1.EndpointSlice) {
			for _, endpoint := range s.endpoints[name] {
				slices = append(slices, &discoveryv1.EndpointSlice{
					AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: ptr.To(int32(endpoint.Port()))}},
					Endpoints: []discoveryv1.Endpoint{{Addresses: []string{endpoint.Addr().String()}}},
				})
			}
			return slices
		},
	}
	state := State{Routes: model.Build(routes, source), Services: map[model.ServiceUnitKey][]model.Endpoint{}, ServiceCA: s.serviceCA}
	for service := range s.endpoints {
		state.Services[model.ServiceUnitKey("shop/"+service)] = source.Endpoints("shop", service)
	}
	return state
}

// route returns a route to a service. The route's name is derived from its host and path.
func route(host, path, service string, tls *routev1.TLSConfig) *routev1.Route {
	name := strings.NewReplacer(".example.com", "", ".", "-", "/", "-").Replace(host + path)
	r := &routev1.Route{Spec: routev1.RouteSpec{Host: host, Path: path, To: routev1.RouteTargetReference{Name: service}, TLS: tls}}
	r.Namespace, r.Name = "shop", name
	return r
}

// pem returns a certificate for a host and the certificate's key.
func (s *shop) pem(t *testing.T, host string) (certificate, key string) {
	t.Helper()
	pair := s.authority.Issue(t, host, host)
	chain, err := os.ReadFile(pair.CertFile)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := os.ReadFile(pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	return string(chain), string(secret)
}

// sync updates the appliance to match a state and returns the number of changes that it sent.
func sync(t *testing.T, a *Appliance, simulated *bigiptest.Appliance, state State) int {
	t.Helper()
	simulated.Changes()
	if err := a.Sync(t.Context(), state); err != nil {
		t.Fatal(err)
	}
	return len(simulated.Changes())
}

// get requests a URL through the appliance and returns the response body or, for a redirect, the
// location. For an https URL, the certificate must be signed by the shop's CA.
func (s *shop) get(a *bigiptest.Appliance, url string) string {
	address := a.HTTP
	if strings.HasPrefix(url, "https:") {
		address = a.HTTPS
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(s.serviceCA))
	client := http.Client{
		Transport: &http.Transport{
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool},
			Dial: func(string, string) (net.Conn, error) { return net.Dial("tcp", address) },
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Get(url)
	if err != nil {
		return err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err.Error()
	case response.StatusCode == http.StatusServiceUnavailable:
		return "unavailable"
	case response.StatusCode == http.StatusBadGateway:
		return "bad gateway"
	}
	return response.Header.Get("Location") + string(body)
}

// allKinds starts services and returns routes of all kinds to these services.
func (s *shop) allKinds(t *testing.T) []*routev1.Route {
	t.Helper()
	s.serve(t, "plain", 2)
	s.serve(t, "cart", 1)
	s.serve(t, "signed", 1, "signed.shop.svc")
	s.serve(t, "own", 1, "pass.example.com")
	edge := &routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Redirect"}
	edge.Certificate, edge.Key = s.pem(t, "edge.example.com")
	open := &routev1.TLSConfig{Termination: "edge", InsecureEdgeTerminationPolicy: "Allow"}
	open.Certificate, open.Key = s.pem(t, "open.example.com")
	again := &routev1.TLSConfig{Termination: "reencrypt"}
	again.Certificate, again.Key = s.pem(t, "again.example.com")
	wrong := again.DeepCopy()
	wrong.Certificate, wrong.Key = s.pem(t, "wrong.example.com")
	wild := route("www.wild.example.com", "", "plain", nil)
	wild.Spec.WildcardPolicy = routev1.WildcardPolicySubdomain
	return []*routev1.Route{
		route("www.example.com", "", "plain", nil), route("www.example.com", "/cart", "cart", nil),
		route("edge.example.com", "", "plain", edge), route("open.example.com", "", "plain", open),
		route("again.example.com", "", "signed", again), route("wrong.example.com", "", "own", wrong),
		route("pass.example.com", "", "own", &routev1.TLSConfig{Termination: "passthrough"}),
		wild, route("inner.wild.example.com", "/shop", "cart", nil),
	}
}

// pages maps requests to the expected responses for the routes that allKinds returns.
func pages() map[string]string {
	return map[string]string{
		"http://www.example.com/": "plain", "http://WWW.example.com/": "plain", "http://www.example.com/cart/1": "cart", "http://www.example.com/cartoon": "plain",
		"http://edge.example.com/a?b=c": "https://edge.example.com/a?b=c", "https://edge.example.com/": "plain", "http://open.example.com/": "plain", "https://open.example.com/": "plain",
		"https://again.example.com/": "signed", "http://again.example.com/": "unavailable", "https://wrong.example.com/": "bad gateway",
		"https://pass.example.com/": "own", "http://pass.example.com/": "unavailable",
		"http://any.wild.example.com/": "plain", "http://inner.wild.example.com/": "unavailable", "http://inner.wild.example.com/shop": "cart", "http://other.example.com/": "unavailable",
	}
}

func checkPages(t *testing.T, s *shop, a *bigiptest.Appliance) {
	t.Helper()
	for url, want := range pages() {
		got := s.get(a, url)
		if location, _, ok := strings.Cut(got, "<a"); ok {
			got = location
		}
		if got != want {
			t.Errorf("%s: %q, want %q", url, got, want)
		}
	}
}

func TestApplianceServesRoutes(t *testing.T) {
	for _, partition := range []string{"/Common", "/Common/openshift/shard"} {
		t.Run(partition, func(t *testing.T) {
			s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
			state := s.state(s.allKinds(t)...)
			config := configOf(t, simulated, map[string]string{"PARTITION_PATH": partition})
			a := New(config)
			if sync(t, a, simulated, state) == 0 {
				t.Error("nothing changed")
			}
			checkPages(t, s, simulated)
			if files := simulated.Files(); len(files) > 0 {
				t.Errorf("uploaded files still exist: %v", files)
			}
			a.Forget()
			if changes := sync(t, a, simulated, state); changes != 0 {
				t.Errorf("the second call sends %d changes", changes)
			}
			if changes := sync(t, New(config), simulated, state); changes != 0 {
				t.Errorf("after a restart of the router, %d changes were sent", changes)
			}

			s.endpoints = map[string][]netip.AddrPort{}
			sync(t, New(config), simulated, s.state())
			for _, collection := range []string{"ltm/pool", "ltm/node", "ltm/policy/" + escape(partition+"/"+insecurePolicy) + "/rules",
				"ltm/policy/" + escape(partition+"/"+securePolicy) + "/rules", "sys/file/ssl-cert", "sys/file/ssl-key", "ltm/profile/client-ssl", "ltm/profile/server-ssl"} {
				if names := simulated.Names(collection); len(names) > 0 {
					t.Errorf("%s still has %v", collection, names)
				}
			}
			if profiles := simulated.Names("ltm/virtual/" + escape(bigiptest.HTTPSServer) + "/profiles"); len(profiles) != 3 {
				t.Errorf("the virtual server has the profiles %v, want those of the administrator", profiles)
			}
		})
	}
}

func TestLostConfigurationIsRepaired(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
	state := s.state(s.allKinds(t)...)
	a := New(configOf(t, simulated, nil))
	sync(t, a, simulated, state)
	simulated.Reset()
	a.Forget()
	sync(t, a, simulated, state)
	checkPages(t, s, simulated)

	// An administrator removes a rule, and a failure interrupts the rule's repair.
	simulated.Delete("ltm/policy/"+escape("/Common/"+insecurePolicy)+"/rules", "openshift_route_shop_www")
	simulated.SetDown(true)
	a.Forget()
	if err := a.Sync(t.Context(), state); err == nil || !strings.Contains(err.Error(), "503") {
		t.Errorf("while the appliance is down: %v", err)
	}
	simulated.SetDown(false)
	if changes := sync(t, a, simulated, state); changes != 1 {
		t.Errorf("%d requests repaired one rule", changes)
	}
	checkPages(t, s, simulated)
}

func TestPoolsFollowServicesAndRoutes(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
	s.serve(t, "web", 2)
	s.serve(t, "other", 1)
	a := New(configOf(t, simulated, nil))
	pools := func() string { return strings.Join(simulated.Names("ltm/pool"), " ") }
	members := func(pool string) int {
		return len(simulated.Names("ltm/pool/" + escape("/Common/"+pool) + "/members"))
	}
	monitorOf := func(pool string) any { return simulated.Attribute("ltm/pool", "/Common/"+pool, "monitor") }

	sync(t, a, simulated, s.state())
	if pools() != "/Common/openshift_shop_other /Common/openshift_shop_web" || members("openshift_shop_web") != 2 {
		t.Errorf("pools of services without routes: %s", pools())
	}
	if got := monitorOf("openshift_shop_web"); got != nil && got != none {
		t.Errorf("a service without a route is checked by %v", got)
	}
	web := route("www.example.com", "", "web", nil)
	sync(t, a, simulated, s.state(web))
	if got := monitorOf("openshift_shop_web"); got != monitor {
		t.Errorf("the service of a route is checked by %v", got)
	}
	all := s.endpoints["web"]
	s.endpoints["web"] = all[:1]
	// One request deletes the member and another request deletes its node.
	if changes := sync(t, a, simulated, s.state(web)); changes != 2 || members("openshift_shop_web") != 1 {
		t.Errorf("%d requests removed a member, and %d members remain", changes, members("openshift_shop_web"))
	}
	s.endpoints["web"] = nil
	sync(t, a, simulated, s.state(web))
	if members("openshift_shop_web") != 0 || s.get(simulated, "http://www.example.com/") != "unavailable" {
		t.Error("a route without endpoints is served")
	}
	sync(t, a, simulated, s.state())
	if pools() != "/Common/openshift_shop_other" {
		t.Errorf("pools without the route and its endpoints: %s", pools())
	}

	s.endpoints["web"] = all
	web.Spec.To.Weight = ptr.To[int32](1)
	web.Spec.AlternateBackends = []routev1.RouteTargetReference{{Name: "other", Weight: ptr.To[int32](3)}}
	sync(t, a, simulated, s.state(web))
	count := map[string]int{}
	for range 80 {
		count[s.get(simulated, "http://www.example.com/")]++
	}
	if count["other"] < 55 || count["web"] < 15 {
		t.Errorf("with the weights 1 and 3, requests are distributed as %v", count)
	}
	if changes := sync(t, New(a.config), simulated, s.state(web)); changes != 0 {
		t.Errorf("after a restart of the router, %d changes were sent", changes)
	}
}

func TestCertificatesOfRoutesChange(t *testing.T) {
	s, simulated := newShop(t), bigiptest.New(t, bigiptest.Options{})
	s.serve(t, "plain", 1)
	a := New(configOf(t, simulated, nil))
	config := &routev1.TLSConfig{Termination: "edge"}
	for range 2 {
		config.Certificate, config.Key = s.pem(t, "edge.example.com")
		sync(t, a, simulated, s.state(route("edge.example.com", "", "plain", config)))
		if got := s.get(simulated, "https://edge.example.com/"); got != "plain" {
			t.Errorf("the route responds: %s", got)
		}
		if certificates, keys := simulated.Names("sys/file/ssl-cert"), simulated.Names("sys/file/ssl-key"); len(certificates) != 1 || len(keys) != 1 {
			t.Errorf("the appliance has the certificates %v and the keys %v", certificates, keys)
		}
	}
	// The host's second route uses the first route's profile.
	more := config.DeepCopy()
	more.Certificate, more.Key = s.pem(t, "edge.example.com")
	sync(t, a, simulated, s.state(route("edge.example.com", "", "plain", config), route("edge.example.com", "/more", "plain", more)))
	if profiles := simulated.Names("ltm/profile/client-ssl"); !slices.Equal(profiles, []string{"/Common/openshift_route_shop_edge-client-ssl-profile"}) {
		t.Errorf("the profiles are %v", profiles)
	}
}
