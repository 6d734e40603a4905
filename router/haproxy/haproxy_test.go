package haproxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/environment"
	"github.com/slipway-platform/slipway/router/model"
)

// fixture runs HAProxy with fake pods.
type fixture struct {
	t         *testing.T
	authority *certtest.Authority
	writer    Writer
	builder   model.Builder
	engine    *Engine
	routes    map[string]*routev1.Route
	pods      map[string][]string // addresses of pods, by service
	peers     []model.Endpoint
	podCount  int // number of pods
	reloads   chan struct{}
	refused   chan rejection
}

// rejection contains the arguments of Engine.Rejected.
type rejection struct {
	routes []model.ServiceAliasConfigKey
	reason error
}

// free reserves distinct ports until the test ends. The ports are bound with SO_REUSEPORT, so that
// HAProxy can also bind them.
func free(t *testing.T, count int) (ports []string) {
	t.Helper()
	for range count {
		socket, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = unix.Close(socket) })
		if err := unix.SetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(socket, &unix.SockaddrInet4{}); err != nil {
			t.Fatal(err)
		}
		address, err := unix.Getsockname(socket)
		if err != nil {
			t.Fatal(err)
		}
		ports = append(ports, strconv.Itoa(address.(*unix.SockaddrInet4).Port))
	}
	return ports
}

func text(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// newFixture prepares HAProxy with the given environment variables. run starts it.
func newFixture(t *testing.T, variables map[string]string) *fixture {
	t.Helper()
	dir := componenttest.ShortDir(t)
	own := map[string]string{"RELOAD_INTERVAL": "1ms"}
	names := []string{"ROUTER_SERVICE_HTTP_PORT", "ROUTER_SERVICE_HTTPS_PORT", "ROUTER_SERVICE_SNI_PORT", "ROUTER_SERVICE_NO_SNI_PORT"}
	for i, port := range free(t, len(names)) {
		own[names[i]] = port
	}
	for name, value := range variables {
		own[name] = value
	}
	s, err := environment.Read(own)
	if err != nil {
		t.Fatal(err)
	}
	b := &fixture{t: t, authority: certtest.New(t), routes: map[string]*routev1.Route{}, pods: map[string][]string{}, reloads: make(chan struct{}, 1000), refused: make(chan rejection, 1000)}
	pair := b.authority.Issue(t, "default")
	b.writer = Writer{Dir: dir, Settings: s, DefaultCertificate: []byte(text(t, pair.CertFile) + text(t, pair.KeyFile))}
	b.engine = &Engine{
		Program: "/usr/sbin/haproxy", Dir: dir, Interval: s.Duration("RELOAD_INTERVAL"), ShutdownTimeout: 200 * time.Millisecond,
		Observe:  func(_, _ time.Duration) { b.reloads <- struct{}{} },
		Rejected: func(routes []model.ServiceAliasConfigKey, err error) { b.refused <- rejection{routes, err} },
	}
	return b
}

func (b *fixture) run() *fixture {
	b.t.Helper()
	b.apply()
	componenttest.Run(b.t, b.engine.Run)
	return b
}

// pod starts an endpoint of a service. The endpoint responds with its name over HTTP or, if a
// certificate is given, over HTTPS.
func (b *fixture) pod(service, name string, certificate *certtest.Pair) *httptest.Server {
	b.t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if wait, err := time.ParseDuration(r.URL.Query().Get("wait")); err == nil {
			select {
			case <-time.After(wait):
			case <-r.Context().Done():
			}
		}
		for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "Forwarded", "Proxy", "Cookie", "X-Ssl-Client-Cn", "X_ssl_client_cn", "X-Ssl_client_dn"} {
			w.Header().Set("Got-"+name, r.Header.Get(name))
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "%s %s%s %s", name, r.Host, r.URL.Path, r.Proto)
	}))
	b.podCount++
	// Each pod has its own address.
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.1.%d:0", b.podCount))
	if err != nil {
		b.t.Fatal(err)
	}
	_ = server.Listener.Close()
	server.Listener = listener
	if certificate != nil {
		pair, err := tls.LoadX509KeyPair(certificate.CertFile, certificate.KeyFile)
		if err != nil {
			b.t.Fatal(err)
		}
		server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
		server.StartTLS()
	} else {
		server.Start()
	}
	b.t.Cleanup(server.Close)
	b.pods[service] = append(b.pods[service], server.Listener.Addr().String())
	return server
}

// route adds a route to a service in the shop namespace.
func (b *fixture) route(name, host, service string, changes ...func(*routev1.Route)) {
	route := &routev1.Route{Spec: routev1.RouteSpec{Host: host, To: routev1.RouteTargetReference{Name: service}}}
	if i := strings.Index(host, "/"); i > 0 {
		route.Spec.Host, route.Spec.Path = host[:i], host[i:]
	}
	route.Namespace, route.Name, route.Annotations = "shop", name, map[string]string{}
	for _, change := range changes {
		change(route)
	}
	b.routes[name] = route
}

func secured(config routev1.TLSConfig) func(*routev1.Route) {
	return func(r *routev1.Route) { r.Spec.TLS = &config }
}

func annotated(pairs ...string) func(*routev1.Route) {
	return func(r *routev1.Route) {
		for i := 0; i < len(pairs); i += 2 {
			r.Annotations[pairs[i]] = pairs[i+1]
		}
	}
}

// source provides the pods in the shop namespace.
func (b *fixture) source() model.Source {
	return model.Source{
		Service: func(_, _ string) *corev1.Service { return nil },
		Slices: func(_, name string) (slices []*discoveryv1.EndpointSlice) {
			for i, address := range b.pods[name] {
				host, port, _ := net.SplitHostPort(address)
				number, _ := strconv.Atoi(port)
				slices = append(slices, &discoveryv1.EndpointSlice{
					AddressType: discoveryv1.AddressTypeIPv4,
					Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{host}, TargetRef: &corev1.ObjectReference{Name: fmt.Sprintf("%s-%d", name, i)}}},
					Ports:       []discoveryv1.EndpointPort{{Name: ptr.To(""), Port: ptr.To(int32(number))}},
				})
			}
			return slices
		},
	}
}

// admitted returns the current routes.
func (b *fixture) admitted() (routes []*routev1.Route) {
	for _, route := range b.routes {
		routes = append(routes, route.DeepCopy())
	}
	return routes
}

// config builds a configuration incrementally from the previous configuration and the changes since
// then.
func (b *fixture) config() *Config {
	b.t.Helper()
	b.builder.Source = b.source()
	changed := append([]model.ServiceAliasConfigKey{}, b.builder.Routes(b.admitted())...)
	var services []model.ServiceUnitKey
	for key := range b.builder.State().ServiceUnits {
		services = append(services, key)
	}
	changed = append(changed, b.builder.Services(services)...)
	state := b.builder.State()
	state.PeerEndpoints = b.peers
	config, err := b.writer.Write(state, changed, true)
	if err != nil {
		b.t.Fatal(err)
	}
	return config
}

func (b *fixture) apply() { b.engine.Set(b.config()) }

// client returns a client that connects to the router for every host.
func (b *fixture) client(config *tls.Config) *http.Client {
	port := func(secure bool) string {
		if secure {
			return b.writer.Settings.Text("ROUTER_SERVICE_HTTPS_PORT")
		}
		return b.writer.Settings.Text("ROUTER_SERVICE_HTTP_PORT")
	}
	if config == nil {
		config = &tls.Config{RootCAs: b.authority.Pool(), InsecureSkipVerify: true}
	}
	dial := func(ctx context.Context, _, address string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port(strings.HasSuffix(address, ":443")))
	}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dial, TLSClientConfig: config, DisableKeepAlives: true, ForceAttemptHTTP2: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Timeout:       20 * time.Second,
	}
}

// get requests a URL and returns the status code, body and header of the response.
func (b *fixture) get(url string) (status int, body string, header http.Header) {
	response, err := b.client(nil).Get(url)
	if err != nil {
		return 0, err.Error(), nil
	}
	defer response.Body.Close()
	content, _ := io.ReadAll(response.Body)
	return response.StatusCode, string(content), response.Header
}

// who returns the name of the pod that serves a URL, or the status code.
func (b *fixture) who(url string) string {
	status, body, _ := b.get(url)
	if status != http.StatusOK {
		return strconv.Itoa(status)
	}
	name, _, _ := strings.Cut(body, " ")
	return name
}

// until waits until a URL is served by the expected pod or returns the expected status code.
func (b *fixture) until(url, want string) {
	b.t.Helper()
	eventually.Equal(b.t, "response of "+url, func() string { return b.who(url) }, want)
}

// valid checks a configuration by running HAProxy.
func (b *fixture) valid(config *Config) error {
	b.t.Helper()
	if err := writeFiles(b.writer.Dir, nil, config.files()); err != nil {
		b.t.Fatal(err)
	}
	file := filepath.Join(b.writer.Dir, "conf", "checked")
	if err := os.WriteFile(file, []byte(config.Text()), 0o600); err != nil {
		b.t.Fatal(err)
	}
	if output, err := exec.Command("/usr/sbin/haproxy", "-c", "-f", file).CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output)
	}
	return nil
}

// kill kills a process that the test has started.
func kill(t *testing.T, pid int) {
	t.Helper()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
