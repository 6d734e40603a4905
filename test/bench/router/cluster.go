package router

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/test/bench/host"
)

// cluster is an in-memory API server with a router and pods. A single HAProxy process represents
// the pods: it listens on all loopback addresses and responds with the address that received the
// request.
type cluster struct {
	dir    string
	client kubernetes.Interface
	routes dynamic.ResourceInterface
	// ports maps names to ports: the router's environment variables, podHTTP, podHTTPS, and the
	// names of the static configuration's ports.
	ports  map[string]string
	router *exec.Cmd
	end    []func()
}

// namespace is the namespace of all routes.
const namespace = "bench"

var routeResource = schema.GroupVersionResource{Group: "route.openshift.io", Version: "v1", Resource: "routes"}

// These are the router's ports.
const (
	httpPort    = "ROUTER_SERVICE_HTTP_PORT"
	httpsPort   = "ROUTER_SERVICE_HTTPS_PORT"
	sniPort     = "ROUTER_SERVICE_SNI_PORT"
	noSNIPort   = "ROUTER_SERVICE_NO_SNI_PORT"
	statsListen = "ROUTER_LISTEN_ADDR"
)

// statsAccess is the user name and the password for the router's metrics.
const statsAccess = "bench"

// newCluster creates a cluster without routes and without a router.
func newCluster() (c *cluster, err error) {
	c = &cluster{ports: map[string]string{}}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	// Use a short name, because the length of a socket's path is limited.
	if c.dir, err = os.MkdirTemp("", "rt"); err != nil {
		return c, err
	}
	c.end = append(c.end, func() { _ = os.RemoveAll(c.dir) })
	api, stop := apitest.Serve()
	c.end = append(c.end, stop)
	if c.client, err = kubernetes.NewForConfig(api.Config()); err != nil {
		return c, err
	}
	all, err := dynamic.NewForConfig(api.Config())
	if err != nil {
		return c, err
	}
	c.routes = all.Resource(routeResource).Namespace(namespace)
	for _, name := range []string{httpPort, httpsPort, sniPort, noSNIPort, statsListen, "podHTTP", "podHTTPS", "staticHTTP", "staticHTTPS", "staticInner"} {
		listener, err := net.Listen("tcp", ":0")
		if err != nil {
			return c, err
		}
		defer listener.Close() // Close the listeners only after all ports are selected.
		_, c.ports[name], _ = net.SplitHostPort(listener.Addr().String())
	}
	return c, host.WriteKubeconfig(filepath.Join(c.dir, "kubeconfig"), api.Config())
}

// stop stops the cluster's components in the reverse order of their start.
func (c *cluster) stop() {
	for i := len(c.end) - 1; i >= 0; i-- {
		c.end[i]()
	}
}

// startProgram runs a program until the cluster stops.
func (c *cluster) startProgram(command *exec.Cmd) error {
	if err := command.Start(); err != nil {
		return err
	}
	c.end = append(c.end, func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait() // Ignore the error, because Wait returns an error after a signal.
	})
	return nil
}

// startRouter starts the router. It returns the time until the router serves all routes.
func (c *cluster) startRouter(ctx context.Context, program string) (time.Duration, error) {
	c.router = exec.CommandContext(ctx, program, "router", "--kubeconfig", filepath.Join(c.dir, "kubeconfig"), "--working-dir", filepath.Join(c.dir, "router"), "--service-ca", "")
	c.router.Env = append(os.Environ(), "ROUTER_BIND_PORTS_AFTER_SYNC=true")
	for _, name := range []string{httpPort, httpsPort, sniPort, noSNIPort} {
		c.router.Env = append(c.router.Env, name+"="+c.ports[name])
	}
	c.router.Env = append(c.router.Env, statsListen+"=127.0.0.1:"+c.ports[statsListen], "STATS_USERNAME="+statsAccess, "STATS_PASSWORD="+statsAccess)
	var text strings.Builder
	c.router.Stderr = &text
	start := time.Now()
	if err := c.startProgram(c.router); err != nil {
		return 0, err
	}
	client := http.Client{Timeout: time.Second}
	for {
		response, err := client.Get("http://127.0.0.1:" + c.ports[httpPort] + "/")
		if err == nil {
			_ = response.Body.Close()
			return time.Since(start), nil
		}
		if err := host.Pause(ctx, 5*time.Millisecond); err != nil {
			return 0, err
		}
		if time.Since(start) > host.ReadyTimeout {
			return 0, fmt.Errorf("the router does not serve; its output is: %s", text.String())
		}
	}
}

// pods serves all pods with one HAProxy process, using the router's generated certificate.
func (c *cluster) pods() error {
	return c.haproxy("pods", fmt.Sprintf(`
frontend pods
  bind :%s
  bind :%s ssl crt %s
  http-request return status 200 content-type text/plain lf-string %%[dst]
`, c.ports["podHTTP"], c.ports["podHTTPS"], c.certificate()))
}

func (c *cluster) certificate() string {
	return filepath.Join(c.dir, "router", "conf", "default.pem")
}

// haproxy runs HAProxy with a handwritten configuration.
func (c *cluster) haproxy(name, text string) error {
	path := filepath.Join(c.dir, name+".cfg")
	const head = `
global
  maxconn 20000
  no strict-limits
  ssl-server-verify required
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
  timeout http-request 10s
  timeout http-keep-alive 300s
`
	if err := os.WriteFile(path, []byte(head+text), 0o600); err != nil {
		return err
	}
	return c.startProgram(exec.Command(haproxyProgram, "-db", "-f", path))
}

// haproxyProgram is the path of the Linux distribution's HAProxy.
const haproxyProgram = "/usr/sbin/haproxy"

// makeService creates a service whose pods have the given addresses.
func (c *cluster) makeService(ctx context.Context, name, port string, addresses ...string) error {
	_, err := c.client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "web", Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	_, err = c.client.DiscoveryV1().EndpointSlices(namespace).Create(ctx, c.slice(name, port, addresses...), metav1.CreateOptions{})
	return err
}

func (c *cluster) slice(service, port string, addresses ...string) *discoveryv1.EndpointSlice {
	var number int32
	_, _ = fmt.Sscan(c.ports[port], &number) // every port in c.ports is a valid number
	web, ready := "web", true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: namespace, Name: service, Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Name: &web, Port: &number}},
	}
	for _, address := range addresses {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	}
	return slice
}

// makeRoute creates a route. Without a termination, the route serves HTTP.
func (c *cluster) makeRoute(ctx context.Context, name, host, service, termination string) error {
	spec := map[string]any{"host": host, "to": map[string]any{"kind": "Service", "name": service}}
	if termination != "" {
		spec["tls"] = map[string]any{"termination": termination}
	}
	_, err := c.routes.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "route.openshift.io/v1", "kind": "Route", "metadata": map[string]any{"name": name, "namespace": namespace}, "spec": spec,
	}}, metav1.CreateOptions{})
	return err
}
