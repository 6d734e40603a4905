// Package identity proves that a running cluster keeps up with what its identity rests on:
// certificates are issued anew, and the machine's address may change, without anyone's help.
package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"testing"

	"github.com/containernetworking/plugins/pkg/netlinksafe"
	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestCertificatesAreIssuedAnewUnderARunningCluster(t *testing.T) {
	// Certificates of an hour are looked at every ten seconds.
	c := kit.Start(t, kit.Options{Master: "slipway: {certificateLifetime: 1h}"})
	for server, address := range map[string]string{
		"master.server": "127.0.0.1:8443",
		"node/server":   net.JoinHostPort(c.Address.String(), "10250"),
	} {
		before, err := serial(c, address)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(c.Path("pki", server+".crt")); err != nil {
			t.Fatal(err)
		}
		c.WaitFor("a new certificate at "+address, func(context.Context) error {
			now, err := serial(c, address)
			if err == nil && now == before {
				err = errors.New("still the old one")
			}
			return err
		})
	}
	for _, process := range c.Status().Processes {
		if process.Restarts != 0 {
			t.Errorf("process %s was started again: %s", process.Name, process.LastError)
		}
	}
	c.OC("get", "nodes")
}

// serial is the number of the certificate that a server shows.
func serial(c *kit.Cluster, address string) (string, error) {
	conn, err := c.Dial(context.Background(), "tcp", address)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	// Which authority signed it is not the question here; the client's own checks follow.
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := client.Handshake(); err != nil {
		return "", err
	}
	return client.ConnectionState().PeerCertificates[0].SerialNumber.String(), nil
}

func TestTheMachinesAddressMayChange(t *testing.T) {
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
		return fmt.Errorf("its addresses are %v", node.Status.Addresses)
	})
	// The API server reaches the kubelet at the new address, and both certificates name it.
	c.WaitFor("a command in the pod", func(context.Context) error {
		_, err := c.TryOC("exec", "witness", "--", "true")
		return err
	})
	if after := c.WaitPodRunning("witness").Status.ContainerStatuses[0]; after.ContainerID != before.ContainerID || after.RestartCount != 0 {
		t.Errorf("the pod was started again: %+v", after)
	}
}

// move gives eth0 another address in place of those it has.
func move(address string) error {
	link, err := netlink.LinkByName("eth0")
	if err != nil {
		return err
	}
	old, err := netlinksafe.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, one := range old {
		if err := netlink.AddrDel(link, &one); err != nil {
			return err
		}
	}
	parsed, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	return netlink.AddrAdd(link, parsed)
}
