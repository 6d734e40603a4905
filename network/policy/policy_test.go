package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkv1 "github.com/openshift/api/network/v1"
	networkfake "github.com/openshift/client-go/network/clientset/versioned/fake"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/internal/hosttest"
	"github.com/slipway-platform/slipway/network/ipfamily"
	"github.com/slipway-platform/slipway/network/vxlan"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// fixture is a node that runs the component, with pods that are network namespaces.
type fixture struct {
	*testing.T
	enforcer *Enforcer
	client   *fake.Clientset
	network  *networkfake.Clientset
	pods     map[string]hosttest.Namespace
	address  map[string]string
	outside  hosttest.Namespace // the machine that newOutside connects
	stop     func()
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644); err != nil {
		t.Fatal(err)
	}
	client, network := fake.NewClientset(), networkfake.NewClientset()
	// The fake client sends no bookmark after the initial objects of a watch, so reflectors must
	// list.
	network.PrependWatchReactor("*", func(action clienttesting.Action) (bool, watch.Interface, error) {
		options := action.(clienttesting.WatchActionImpl).ListOptions
		if options.SendInitialEvents != nil {
			return true, nil, apierrors.NewBadRequest("no initial events")
		}
		return false, nil, nil
	})
	if err := network.Tracker().Add(&networkv1.ClusterNetwork{ObjectMeta: metav1.ObjectMeta{Name: networkv1.ClusterNetworkDefault}}); err != nil {
		t.Fatal(err)
	}
	f := &fixture{
		T: t, client: client, network: network, pods: map[string]hosttest.Namespace{}, address: map[string]string{},
		enforcer: &Enforcer{NodeName: "one", CheckInterval: 30 * time.Second, Client: client, Table: "test-policy", Socket: filepath.Join(t.TempDir(), "s"), LeaseDir: t.TempDir(),
			Network: network, Networks: Networks{Pods: []netip.Prefix{netip.MustParsePrefix("10.128.0.0/14")}, Services: netip.MustParsePrefix("172.30.0.0/16"), Tunnel: "tunnel"}, Names: NewNames(), Resolvable: NewResolvable(filepath.Join(t.TempDir(), "resolvable")), Resolver: "127.0.0.1:1", Tunnel: &vxlan.Tunnel{},
			timeouts: timeouts{labels: 200 * time.Millisecond, network: 200 * time.Millisecond},
		},
	}
	for _, namespace := range []string{"shop", "bank"} {
		f.must(client.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"name": namespace}}}))
	}
	return f
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// start runs the component until f.stop is called or the test ends.
func (f *fixture) start() {
	f.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan struct{}), make(chan error, 1)
	go func() { done <- f.enforcer.Run(ctx, func() { close(ready) }) }()
	select {
	case <-ready:
	case err := <-done:
		f.Fatalf("the component ended: %v", err)
	}
	stopped := false
	f.stop = func() {
		if cancel(); !stopped {
			stopped = true
			f.must(<-done)
		}
	}
	f.Cleanup(f.stop)
}

// lease creates a pod's network and lease, as the CNI plugin does. The pod serves port 80.
func (f *fixture) lease(namespace, name string) {
	f.Helper()
	index := len(f.pods) + 1
	n := hosttest.NewNamespace(f.T, name)
	n.Connect(f.T, fmt.Sprintf("10.128.%d.1/24", index), fmt.Sprintf("10.128.%d.2/24", index))
	n.Serve(f.T, 80)
	f.pods[name], f.address[name] = n, fmt.Sprintf("10.128.%d.2", index)
	lease := fmt.Sprintf(`{"address": %q, "pod": {"namespace": %q, "name": %q, "uid": "uid-%[3]s"}}`, f.address[name], namespace, name)
	f.must(os.WriteFile(filepath.Join(f.enforcer.LeaseDir, f.address[name]+".json"), []byte(lease), 0o600))
}

// object returns a pod's API object.
func object(namespace, name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "main"}}},
	}
}

func (f *fixture) create(namespace, name string) {
	f.Helper()
	_, err := f.client.CoreV1().Pods(namespace).Create(f.Context(), object(namespace, name), metav1.CreateOptions{})
	f.must(err)
}

// policy creates or replaces a policy in the shop project.
func (f *fixture) policy(name, spec string) {
	f.Helper()
	policy, policies := policyOf(f.T, name, spec), f.client.NetworkingV1().NetworkPolicies("shop")
	_, err := policies.Update(f.Context(), policy, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = policies.Create(f.Context(), policy, metav1.CreateOptions{})
	}
	f.must(err)
}

// reaches checks that the node forwards exactly the given connections between the pods, such as
// "web>db bank>web".
func (f *fixture) reaches(want string) {
	f.Helper()
	eventually.Equal(f.T, "connections", func() string {
		var group errgroup.Group
		var mu sync.Mutex
		var pairs []string
		for from := range f.pods {
			for to := range f.pods {
				if from == to {
					continue
				}
				group.Go(func() error {
					if _, err := f.pods[from].Probe("udp4", f.address[to]+":80"); err == nil {
						mu.Lock()
						defer mu.Unlock()
						pairs = append(pairs, from+">"+to)
					}
					return nil
				})
			}
		}
		_ = group.Wait()
		slices.Sort(pairs)
		return strings.Join(pairs, " ")
	}, want)
}

func TestPoliciesAreEnforcedAsTheyChange(t *testing.T) {
	f := newFixture(t)
	for _, pod := range [][2]string{{"shop", "web"}, {"shop", "db"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	f.start()
	f.reaches("db>till db>web till>db till>web web>db web>till")
	f.policy("one", `{podSelector: {}, policyTypes: [Ingress]}`)
	f.reaches("db>till web>till")
	f.policy("two", `{podSelector: {matchLabels: {app: db}}, ingress: [{from: [{podSelector: {matchLabels: {app: web}}}]}]}`)
	f.reaches("db>till web>db web>till")
	f.policy("one", `{podSelector: {}, ingress: [{from: [{namespaceSelector: {matchLabels: {name: bank}}}], ports: [{port: 80, protocol: UDP}]}]}`)
	f.reaches("db>till till>db till>web web>db web>till")
	f.policy("three", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Egress], egress: [{to: [{ipBlock: {cidr: 10.128.0.0/16, except: [`+f.address["till"]+`/32]}}]}]}`)
	f.reaches("db>till till>db till>web web>db")

	f.stop() // the kernel keeps the rules
	f.reaches("db>till till>db till>web web>db")
	for _, name := range []string{"one", "two", "three"} {
		f.must(f.client.NetworkingV1().NetworkPolicies("shop").Delete(t.Context(), name, metav1.DeleteOptions{}))
	}
	f.start()
	f.reaches("db>till db>web till>db till>web web>db web>till")
}

// await calls the component as the CNI plugin does.
func (f *fixture) await(namespace, name string) cni.PolicyResponse {
	f.Helper()
	conn, err := net.Dial("unix", f.enforcer.Socket)
	f.must(err)
	defer conn.Close()
	_, err = fmt.Fprintf(conn, `{"address": %q, "namespace": %q, "name": %q, "uid": "uid-%[3]s"}`, f.address[name], namespace, name)
	f.must(err)
	var response cni.PolicyResponse
	f.must(json.NewDecoder(conn).Decode(&response))
	return response
}

func TestPolicyPrecedesPod(t *testing.T) {
	f := newFixture(t)
	f.lease("bank", "till")
	f.create("bank", "till")
	f.policy("none", `{podSelector: {}, policyTypes: [Ingress, Egress]}`)
	f.start()
	for name, create := range map[string]bool{"known": true, "unknown": false} {
		if create {
			f.create("shop", name)
		}
		f.lease("shop", name)
		if response := f.await("shop", name); response.Error != "" {
			t.Fatal(response.Error)
		}
		if response, err := f.pods["till"].Probe("udp4", f.address[name]+":80"); err == nil {
			t.Errorf("a packet reaches the pod %s: %s", name, response)
		}
	}
	// The labels of the pod arrive later.
	f.policy("none", `{podSelector: {}, ingress: [{}]}`)
	f.create("shop", "unknown")
	f.reaches("known>till known>unknown till>known till>unknown unknown>known unknown>till")
}

// connection opens a connection between two pods. echo reports whether the connection still works.
func (f *fixture) connection(from, to string) (echo func() bool) {
	f.Helper()
	f.pods[to].Do(f.T, func() error {
		listener, err := net.Listen("tcp4", ":81")
		if err != nil {
			return err
		}
		f.Cleanup(func() { listener.Close() })
		go func() {
			if conn, err := listener.Accept(); err == nil {
				_, _ = io.Copy(conn, conn)
			}
		}()
		return nil
	})
	var conn net.Conn
	f.pods[from].Do(f.T, func() (err error) {
		conn, err = net.Dial("tcp4", f.address[to]+":81")
		return err
	})
	f.Cleanup(func() { conn.Close() })
	return func() bool {
		_ = conn.SetDeadline(time.Now().Add(time.Second))
		_, writeErr := conn.Write([]byte("x"))
		_, readErr := io.ReadFull(conn, make([]byte, 1))
		return writeErr == nil && readErr == nil
	}
}

func TestNewPolicyEndsConnections(t *testing.T) {
	f := newFixture(t)
	for _, name := range []string{"web", "db"} {
		f.lease("shop", name)
		f.create("shop", name)
	}
	f.start()
	echo := f.connection("db", "web")
	if !echo() {
		t.Fatal("no response before there is a policy")
	}
	f.policy("none", `{podSelector: {matchLabels: {app: web}}, policyTypes: [Ingress]}`)
	eventually.True(t, "end of the connection", func() bool { return !echo() })
}

func TestReusedAddressHasNoRightsOfFormerPod(t *testing.T) {
	f := newFixture(t)
	f.lease("shop", "web")
	f.create("shop", "web")
	f.lease("shop", "former")
	f.create("shop", "former")
	f.policy("one", `{podSelector: {matchLabels: {app: web}}, ingress: [{from: [{podSelector: {matchLabels: {app: former}}}]}]}`)
	f.start()
	f.reaches("former>web web>former")
	// After the deletion of a pod, its address is assigned to a pod in another project. The API
	// server still has the deleted pod's object.
	lease := filepath.Join(f.enforcer.LeaseDir, f.address["former"]+".json")
	f.must(os.WriteFile(lease, []byte(fmt.Sprintf(`{"address": %q, "pod": {"namespace": "bank", "name": "new", "uid": "uid-new"}}`, f.address["former"])), 0o600))
	f.create("bank", "new")
	f.address["new"] = f.address["former"]
	if response := f.await("bank", "new"); response.Error != "" {
		t.Fatal(response.Error)
	}
	if response, err := f.pods["former"].Probe("udp4", f.address["web"]+":80"); err == nil {
		t.Errorf("the new pod has the rights of the former one: %s", response)
	}
}

// nft runs nft commands and returns their output.
func (f *fixture) nft(commands string) string {
	f.Helper()
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(commands)
	out, err := command.CombinedOutput()
	if err != nil {
		f.Fatalf("nft %s: %v: %s", commands, err, out)
	}
	return string(out)
}

func TestTableIsRecreated(t *testing.T) {
	f := newFixture(t)
	table, err := openTable(f.enforcer.Table, f.enforcer.Networks)
	f.must(err)
	objects := shop()
	objects.policies = append(objects.policies, policyOf(t, "none", `{podSelector: {}, policyTypes: [Ingress, Egress]}`))
	f.must(table.apply(t.Context(), compile(objects)))
	before := f.nft("list table ip " + f.enforcer.Table)
	f.nft("delete table ip " + f.enforcer.Table)
	f.must(table.check(t.Context()))
	f.must(table.apply(t.Context(), compile(objects)))
	if diff := cmp.Diff(before, f.nft("list table ip "+f.enforcer.Table)); diff != "" {
		t.Errorf("table (-before +after):\n%s", diff)
	}
	f.must(table.apply(t.Context(), newRuleset(ipfamily.IPv4)))
	if after := f.nft("list table ip " + f.enforcer.Table); strings.Contains(after, "10.128.0.2") || strings.Contains(after, "shop") {
		t.Errorf("without policies, the table has rules:\n%s", after)
	}
}

func TestPodsOfOtherNodesCanBeIsolated(t *testing.T) {
	f := newFixture(t)
	table, err := openTable(f.enforcer.Table, f.enforcer.Networks)
	f.must(err)
	objects := shop()
	check := func(when string, want map[[2]string]bool) {
		t.Helper()
		f.must(table.apply(t.Context(), compile(objects)))
		for pair, want := range want {
			isolated, err := Isolation(f.enforcer.Table, f.enforcer.Networks)(t.Context(), netip.MustParseAddr(pair[0]), netip.MustParseAddr(pair[1]))
			if err != nil || isolated != want {
				t.Errorf("isolation of %v %s: %t, %v, want %t", pair, when, isolated, err, want)
			}
		}
	}
	check("without policies", map[[2]string]bool{{"10.128.0.4", "10.128.0.2"}: false, {"10.128.0.4", "10.129.0.2"}: false})
	objects.policies = append(objects.policies, policyOf(t, "none", `{podSelector: {}, policyTypes: [Ingress, Egress]}`))
	check("with a policy", map[[2]string]bool{
		{"10.128.0.2", "10.128.0.4"}: true, {"10.128.0.4", "10.128.0.2"}: true, {"10.129.0.3", "10.128.0.4"}: false,
		{"10.128.0.4", "10.129.0.2"}: true, {"10.128.0.4", "192.0.2.9"}: false,
	})
	objects.policies = nil
	check("after the policy", map[[2]string]bool{{"10.128.0.4", "10.129.0.2"}: false})
}

func TestNodeWithoutPoliciesChecksNoPackets(t *testing.T) {
	f := newFixture(t)
	table, err := openTable(f.enforcer.Table, f.enforcer.Networks)
	f.must(err)
	objects := shop()
	objects.policies = append(objects.policies, policyOf(t, "none", `{podSelector: {}, policyTypes: [Ingress]}`))
	for _, tt := range []struct {
		rules *ruleset
		want  int // chains that check packets
	}{{newRuleset(ipfamily.IPv4), 0}, {compile(objects), 1}, {newRuleset(ipfamily.IPv4), 0}} {
		f.must(table.apply(t.Context(), tt.rules))
		f.must(table.check(t.Context()))
		if table.current == nil {
			t.Error("the table has other chains than it should have")
		}
		if content := f.nft("list table ip " + f.enforcer.Table); strings.Count(content, "type filter hook") != tt.want {
			t.Errorf("chains that check packets, want %d:\n%s", tt.want, content)
		}
	}
}

func TestRemovedRulesReturnAtTheNextCheck(t *testing.T) {
	f := newFixture(t)
	f.enforcer.CheckInterval = 100 * time.Millisecond
	for _, pod := range [][2]string{{"shop", "web"}, {"bank", "till"}} {
		f.lease(pod[0], pod[1])
		f.create(pod[0], pod[1])
	}
	_, err := f.client.NetworkingV1().NetworkPolicies("shop").Create(t.Context(), policyOf(t, "none", `{podSelector: {}, policyTypes: [Ingress]}`), metav1.CreateOptions{})
	f.must(err)
	f.start()
	isolated := func() bool {
		content, err := exec.Command("nft", "list", "table", "ip", f.enforcer.Table).Output()
		return err == nil && strings.Contains(string(content), f.address["web"])
	}
	eventually.True(t, "rules", isolated)
	f.nft("delete table ip " + f.enforcer.Table)
	eventually.True(t, "rules after their removal", isolated)
}
