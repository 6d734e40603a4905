package loadbalancer

import (
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/router/haproxy"
	"github.com/slipway-platform/slipway/router/masters"
)

// cluster is a fake cluster. Each of its masters serves the list of masters.
type cluster struct {
	mu      sync.Mutex
	masters []*httptest.Server
	changed chan struct{}
}

// add starts a master and returns its address.
func (c *cluster) add(t *testing.T) string {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.masters = append(c.masters, server)
	if c.changed != nil {
		close(c.changed)
	}
	c.changed = make(chan struct{})
	return server.Listener.Addr().String()
}

// lose stops a master and removes it from the list that the other masters serve.
func (c *cluster) lose(i int) {
	c.mu.Lock()
	lost := c.masters[i]
	c.masters = slices.Delete(c.masters, i, i+1)
	close(c.changed)
	c.changed = make(chan struct{})
	c.mu.Unlock()
	lost.CloseClientConnections()
	lost.Close()
}

// slices returns the endpoints of the `kubernetes` service. The version increases with each change.
func (c *cluster) slices() (list []discoveryv1.EndpointSlice, changed chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, master := range c.masters {
		host, port, _ := net.SplitHostPort(master.Listener.Addr().String())
		number, _ := strconv.Atoi(port)
		list = append(list, discoveryv1.EndpointSlice{
			TypeMeta:   metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("kubernetes-", i), Namespace: "default", ResourceVersion: "1"},
			Ports:      []discoveryv1.EndpointPort{{Name: ptr.To("https"), Port: ptr.To(int32(number))}},
			Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{host}}},
		})
	}
	return list, c.changed
}

// serve serves health checks, list requests and watch requests. A watch ends when the list of
// masters next changes.
func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "endpointslices") {
		fmt.Fprint(w, "ok")
		return
	}
	if r.Header.Get("Authorization") != "Bearer secret" {
		http.Error(w, "no", http.StatusUnauthorized)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") != "" {
		http.Error(w, "lists are not streamed", http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	list, changed := c.slices()
	if r.URL.Query().Get("watch") != "" {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		// An expired watch causes the client to list again.
		_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Code: http.StatusGone, Reason: metav1.StatusReasonExpired,
		}})
		return
	}
	_ = json.NewEncoder(w).Encode(discoveryv1.EndpointSliceList{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSliceList"},
		ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: list,
	})
}

// clientset returns a fake client that creates tokens immediately.
func clientset() *fake.Clientset {
	client := fake.NewClientset()
	client.PrependReactor("create", "secrets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		secret := action.(clienttesting.CreateAction).GetObject().(*corev1.Secret)
		secret.Data = map[string][]byte{corev1.ServiceAccountTokenKey: []byte("secret")}
		return false, nil, nil
	})
	return client
}

// newBalancer returns a load balancer that uses a kubeconfig for the cluster.
func newBalancer(t *testing.T, c *cluster, addresses ...string) *LoadBalancer {
	t.Helper()
	program, err := haproxy.FindProgram()
	if err != nil {
		t.Fatal(err)
	}
	dir := componenttest.ShortDir(t)
	var servers []masters.Server
	for i, address := range addresses {
		servers = append(servers, masters.Server{Name: fmt.Sprint("master-", i), Address: address})
	}
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.masters[0].Certificate().Raw})
	content, err := Kubeconfig(t.Context(), clientset(), authority, servers)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(KubeconfigFile(dir), content, 0o600); err != nil {
		t.Fatal(err)
	}
	return &LoadBalancer{Dir: dir, Program: program, Listen: componenttest.UnusedAddress(t), Stats: componenttest.UnusedAddress(t), Local: componenttest.UnusedAddress(t)}
}

// reaches reports whether a client receives a response through the load balancer.
func reaches(t *testing.T, l *LoadBalancer) bool {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Get("https://" + l.Listen + "/readyz")
	if err != nil {
		return false
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	return err == nil && string(body) == "ok"
}

func TestLoadBalancerFollowsMasters(t *testing.T) {
	c := &cluster{}
	first := c.add(t)
	l := newBalancer(t, c, first)
	running := componenttest.Run(t, l.Run)
	if !reaches(t, l) {
		t.Fatal("no response from the first master")
	}
	second := c.add(t)
	stored := filepath.Join(l.Dir, "masters.json")
	eventually.True(t, "the second master is stored", func() bool {
		content, err := os.ReadFile(stored)
		return err == nil && strings.Contains(string(content), second)
	})
	c.lose(0)
	eventually.True(t, "only the second master is stored", func() bool {
		content, err := os.ReadFile(stored)
		return err == nil && strings.Contains(string(content), second) && !strings.Contains(string(content), first)
	})
	eventually.True(t, "the second master responds", func() bool { return reaches(t, l) })
	running.Stop()

	// The kubeconfig contains only the lost master, so the load balancer must use its stored list.
	componenttest.Run(t, l.Run)
	eventually.True(t, "the second master responds after a restart", func() bool { return reaches(t, l) })
}

func TestLoadBalancerNeedsKubeconfig(t *testing.T) {
	l := &LoadBalancer{Dir: t.TempDir()}
	if err := l.Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "slipway lb kubeconfig") {
		t.Errorf("got %v", err)
	}
}

func TestKubeconfigHasAllMastersAndMinimalRights(t *testing.T) {
	client := clientset()
	servers := []masters.Server{{Name: "a", Address: "192.0.2.1:8443"}, {Name: "b", Address: "192.0.2.2:8443"}}
	var contents [2]string
	for i := range contents { // the second pass uses the existing account
		content, err := Kubeconfig(t.Context(), client, []byte("authority"), servers)
		if err != nil {
			t.Fatal(err)
		}
		contents[i] = string(content)
	}
	if contents[0] != contents[1] {
		t.Error("a second kubeconfig differs from the first")
	}
	config, err := clientcmd.Load([]byte(contents[0]))
	if err != nil {
		t.Fatal(err)
	}
	if names, err := serversOf(config); err != nil || names["192.0.2.2:8443"] != "b" || config.AuthInfos[accountName].Token != "secret" {
		t.Errorf("the masters are %v, %v", names, err)
	}
	role, err := client.RbacV1().Roles("default").Get(t.Context(), roleName, metav1.GetOptions{})
	if err != nil || len(role.Rules) != 1 || role.Rules[0].Resources[0] != "endpointslices" {
		t.Errorf("the role is %+v, %v", role, err)
	}
	if _, err := Kubeconfig(t.Context(), client, nil, nil); err == nil {
		t.Error("no error for a cluster without API servers")
	}
}

func TestMasterThatJoinedLaterIsNamedByAddress(t *testing.T) {
	names := masterNames{"192.0.2.1:8443": "a"}
	got := names.servers([]string{"192.0.2.1:8443", "192.0.2.2:8443", "192.0.2.2:9443", "[2001:db8::1]:8443"})
	want := []masters.Server{
		{Name: "a", Address: "192.0.2.1:8443"}, {Name: "192.0.2.2", Address: "192.0.2.2:8443"},
		{Name: "192.0.2.2-9443", Address: "192.0.2.2:9443"}, {Name: "2001-db8--1", Address: "[2001:db8::1]:8443"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
