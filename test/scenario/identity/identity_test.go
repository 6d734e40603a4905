// Package identity tests that a running cluster handles changes to its credentials and address
// without an administrator. Slipway reissues certificates, and the machine's address can change.
package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestCertificatesAreReissuedInRunningCluster(t *testing.T) {
	// With this lifetime, Slipway checks the certificates every ten seconds.
	c := kit.Start(t, kit.Options{Master: "slipway: {certificateLifetime: 1h}"})
	// Delete both servers' certificate files. The servers reload their certificates within a
	// minute.
	serials := map[string]string{} // serial numbers, keyed by address
	for server, address := range map[string]string{
		"master.server": "127.0.0.1:8443",
		"node/server":   net.JoinHostPort(c.Address.String(), "10250"),
	} {
		former, err := serial(c, address)
		if err != nil {
			t.Fatal(err)
		}
		serials[address] = former
		if err := os.Remove(c.Path("pki", server+".crt")); err != nil {
			t.Fatal(err)
		}
	}
	for address, former := range serials {
		c.WaitFor("a new certificate at "+address, func(context.Context) error {
			current, err := serial(c, address)
			if err == nil && current == former {
				err = errors.New("the server still has the old certificate")
			}
			return err
		})
	}
	rotateKeysUnderLoad(t, c)
	for _, process := range c.Status().Processes {
		if process.Restarts != 0 {
			t.Errorf("process %s was started again: %s", process.Name, process.LastError)
		}
	}
	c.OC("get", "nodes")
}

// rotateKeysUnderLoad replaces the key of every certificate twice, which normally takes more than
// two lifetimes. Meanwhile, clients open a connection for each request, and no request may fail.
func rotateKeysUnderLoad(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: echo}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: echo, image: %s, command: [sleep, infinity]}]
`, kit.ToolsImage))
	node := c.WaitPodRunning("echo").Spec.NodeName
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for name, request := range map[string]func(context.Context) error{
		"API server": func(ctx context.Context) error {
			return withFreshClient(c, func(client kubernetes.Interface) error {
				_, err := client.CoreV1().Pods("default").Get(ctx, "echo", metav1.GetOptions{})
				return err
			})
		},
		"kubelet, through the API server": func(ctx context.Context) error {
			return withFreshClient(c, func(client kubernetes.Interface) error {
				return client.CoreV1().RESTClient().Get().AbsPath("/api/v1/nodes/" + node + "/proxy/healthz").Do(ctx).Error()
			})
		},
		"registry": func(context.Context) error {
			_, err := serial(c, net.JoinHostPort(c.Address.String(), "5000"))
			return err
		},
	} {
		load.Go(func() {
			requests := 0
			for ctx.Err() == nil {
				if err := request(context.WithoutCancel(ctx)); err != nil {
					t.Errorf("request %d to the %s: %v", requests, name, err)
				}
				requests++
			}
			if requests < 10 {
				t.Errorf("only %d requests to the %s", requests, name)
			}
		})
	}
	for range 2 {
		rotateKeys(t, c)
	}
	stop()
	load.Wait()
}

// withFreshClient calls call with an administrator's client that opens its own connection.
func withFreshClient(c *kit.Cluster, call func(kubernetes.Interface) error) error {
	config := rest.CopyConfig(c.Config)
	config.QPS = -1
	// Set Dial, because client-go shares a transport between clients that have no separate Dial
	// function.
	config.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		return c.Dial(ctx, network, address)
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer connections.CloseIdleConnections()
	client, err := kubernetes.NewForConfigAndClient(config, connections)
	if err != nil {
		return err
	}
	return call(client)
}

// rotateKeys replaces the keys of all leaf certificates, and waits until the servers use them.
func rotateKeys(t *testing.T, c *kit.Cluster) {
	t.Helper()
	before := map[string]string{"127.0.0.1:8443": ""}
	for _, port := range []string{"10250", "5000"} {
		before[net.JoinHostPort(c.Address.String(), port)] = ""
	}
	for address := range before {
		var err error
		if before[address], err = serial(c, address); err != nil {
			t.Fatal(err)
		}
	}
	keys := leafKeys(t, c)
	c.MustSlipway("certificates", "rotate")
	for path, former := range leafKeys(t, c) {
		if former == keys[path] {
			t.Errorf("%s contains the former key", path)
		}
		if _, err := tls.LoadX509KeyPair(strings.TrimSuffix(path, ".key")+".crt", path); err != nil {
			t.Error(err)
		}
	}
	c.WaitFor("servers with new certificates", func(context.Context) error {
		for address, former := range before {
			if current, err := serial(c, address); err != nil || current == former {
				return fmt.Errorf("%s has the former certificate: %w", address, err)
			}
		}
		return nil
	})
}

// leafKeys returns the private keys of leaf certificates, keyed by path. CA keys and the key for
// service account tokens are not rotated.
func leafKeys(t *testing.T, c *kit.Cluster) map[string]string {
	t.Helper()
	keys := map[string]string{}
	for _, pattern := range []string{c.Path("pki", "*.key"), c.Path("pki", "node", "*.key")} {
		paths, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			name := strings.TrimSuffix(filepath.Base(path), ".key")
			if strings.HasSuffix(name, "ca") || name == "service-signer" || name == "serviceaccounts.private" || name == "serviceaccounts.public" {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			keys[path] = string(content)
		}
	}
	if len(keys) < 10 {
		t.Fatalf("the host has %d keys", len(keys))
	}
	return keys
}

// serial returns the serial number of a server's serving certificate.
func serial(c *kit.Cluster, address string) (string, error) {
	conn, err := c.Dial(context.Background(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Do not verify the certificate's CA here, because the clients verify it afterwards.
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := client.Handshake(); err != nil {
		return "", err
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func TestAddressOfMachineCanChange(t *testing.T) {
	const moved = "198.51.100.7"
	c := kit.Start(t, kit.Options{})
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: witness}
spec:
  terminationGracePeriodSeconds: 1
  containers: [{name: witness, image: %s, command: [sleep, infinity]}]
`, kit.ToolsImage))
	before := c.WaitPodRunning("witness").Status.ContainerStatuses[0]
	name := c.Pod("witness").Spec.NodeName

	if err := c.Do(func() error { return move(moved + "/24") }); err != nil {
		t.Fatal(err)
	}
	c.WaitFor("a node at "+moved, func(ctx context.Context) error {
		c.Connect()
		node, err := c.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP && address.Address == moved {
				return nil
			}
		}
		return fmt.Errorf("the addresses of the node are %v", node.Status.Addresses)
	})
	// The API server must reach the kubelet at the new address, and both serving certificates must
	// contain the new address.
	c.WaitFor("a command in the pod", func(context.Context) error {
		_, err := c.TryOC("exec", "witness", "--", "true")
		return err
	})
	if after := c.WaitPodRunning("witness").Status.ContainerStatuses[0]; after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Errorf("the pod was started again: %+v", after)
	}
}

// move replaces the addresses of eth0 with a new address.
func move(address string) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	old, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, addr := range old {
		if err := netlink.AddrDel(link, &addr); err != nil {
			return err
		}
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, parsed)
}
