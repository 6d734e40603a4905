package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/slipway-platform/slipway/test/kit"
)

// shortLifetime makes the control plane issue certificates that nodes renew after at most 78
// seconds. As in upstream, certificates are backdated by five minutes, and nodes renew them after
// 70 to 90 percent of their validity period.
const shortLifetime = "kubernetesMasterConfig: {controllerArguments: {cluster-signing-duration: [2m]}}"

// firstCertificate returns the first certificate in a file.
func firstCertificate(path string) (*x509.Certificate, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	certificates, err := cert.ParseCertsPEM(content)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return certificates[0], nil
}

// servingCertificate returns the certificate that a host's kubelet serves.
func servingCertificate(ctx context.Context, host *kit.Host) (*x509.Certificate, error) {
	conn, err := host.Dial(ctx, "tcp", host.Address.String()+":10250")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// Do not verify the certificate, because the test compares the certificate itself.
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

// TestNodeRenewsItsCertificates follows 3.11 Cluster Administration, 2.11: the kubelet rotates its
// client and serving certificates. Other node components, such as the router, also renew their
// certificates.
func TestNodeRenewsItsCertificates(t *testing.T) {
	c := kit.Start(t, kit.Options{Segment: true, Master: shortLifetime})
	host := c.Join(second, kit.Options{Router: true})
	waitNodeReady(c, second)
	paths, err := filepath.Glob(host.Path("pki", "*", "*-current.pem"))
	if err != nil || !slices.Contains(paths, host.Path("pki", "node", "slipway-router-current.pem")) {
		t.Fatalf("the host has the certificates %q, %v", paths, err)
	}
	former := map[string]*x509.Certificate{}
	for _, path := range paths {
		if former[path], err = firstCertificate(path); err != nil {
			t.Fatal(err)
		}
	}
	served, err := servingCertificate(t.Context(), host)
	if err != nil {
		t.Fatal(err)
	}
	for path, before := range former {
		c.WaitFor("renewal of "+filepath.Base(path), func(context.Context) error {
			after, err := firstCertificate(path)
			if err == nil && !after.NotAfter.After(before.NotAfter) {
				err = fmt.Errorf("the certificate is valid until %s", after.NotAfter.Format(time.TimeOnly))
			}
			return err
		})
	}
	c.WaitFor("use of the renewed serving certificate", func(ctx context.Context) error {
		certificate, err := servingCertificate(ctx, host)
		if err == nil && certificate.Equal(served) {
			err = errors.New("the kubelet serves with the former certificate")
		}
		return err
	})
	c.Apply(server("renewed", second))
	c.WaitPodRunning("renewed")
	if got := c.Exec("renewed", "hostname"); got != "renewed\n" {
		t.Errorf("oc exec printed %q", got)
	}
	waitNodeReady(c, second)
	checkExpiry(t, c, host)
	checkSettings(t, c, host)
	checkMove(t, c, host)
}

// checkPods creates a pod on the second host, and checks that it runs and that the master can reach
// it.
func checkPods(t *testing.T, c *kit.Cluster, name string) {
	t.Helper()
	c.Apply(server(name, second))
	c.WaitPodRunning(name)
	if got := c.Exec(name, "hostname"); got != name+"\n" {
		t.Errorf("oc exec printed %q", got)
	}
}

// checkExpiry tests hosts that were off until all of their certificates had expired. The master
// issues new certificates for itself. The node needs a token that was issued for its name.
func checkExpiry(t *testing.T, c *kit.Cluster, host *kit.Host) {
	t.Helper()
	host.MustSlipway("down")
	c.MustSlipway("down")
	host.ExpireCertificates(c)
	c.ExpireCertificates(c)
	kit.Edit(t, c.MasterFile(), "2m", "1h")
	c.Up()
	remedy := "run `slipway token create --node " + second + "` on a master"
	for _, args := range [][]string{{"up"}, {"up", "--join", c.APIURL()}} {
		if result := host.Slipway(args...); result.Code == 0 || !strings.Contains(result.Stderr, remedy) {
			t.Errorf("slipway %q with expired certificates: %+v", args, result)
		}
	}
	if result := c.Slipway("token", "create", "--node", "unknown"); result.Code == 0 || !strings.Contains(result.Stderr, "the cluster has no host unknown") {
		t.Errorf("a token for a node that does not exist: %+v", result)
	}
	host.JoinWith(c.APIURL(), strings.TrimSpace(c.MustSlipway("token", "create", "--node", second)))
	checkPods(t, c, "after-expiry")
}

// checkSettings tests that the second host applies a change to the cluster's settings.
func checkSettings(t *testing.T, c *kit.Cluster, host *kit.Host) {
	t.Helper()
	const name = "registry.example.com"
	content, err := os.ReadFile(c.MasterFile())
	if err != nil {
		t.Fatal(err)
	}
	content = append(content, "\nimagePolicyConfig: {externalRegistryHostname: "+name+"}\n"...)
	if err := os.WriteFile(c.MasterFile(), content, 0o600); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("master-restart", "api")
	host.WaitFor("the registry's new name on the host", func(context.Context) error {
		_, err := os.Stat(host.Path("registries.d", name, "hosts.toml"))
		return err
	})
	host.WaitReady()
}

// checkMove tests a cluster that is restored from a backup at a different address. The node finds
// the cluster only after an administrator specifies the new address.
func checkMove(t *testing.T, c *kit.Cluster, host *kit.Host) {
	t.Helper()
	archive := filepath.Join(t.TempDir(), "host.tar.gz")
	c.MustSlipway("backup", archive)
	c.MustSlipway("down", "--purge")
	if err := c.Move(c.NextAddress()); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("restore", archive)
	c.Up()
	if result := host.Slipway("up", "--join", c.APIURL()); result.Code != 0 || !strings.Contains(result.Stderr, "This host is the node "+second) {
		t.Errorf("the node does not find its cluster: %+v", result)
	}
	checkPods(t, c, "after-move")
}
