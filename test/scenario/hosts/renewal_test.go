package hosts

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"github.com/slipway-platform/slipway/test/kit"
)

// shortLifetime makes the control plane issue certificates that nodes renew at most 78 seconds
// later: as in upstream, the certificates are backdated by five minutes, and they are renewed when
// 70 to 90 percent of their validity period has passed.
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

// servingCertificate returns the serving certificate of a host's kubelet.
func servingCertificate(ctx context.Context, host *kit.Host) (*x509.Certificate, error) {
	conn, err := host.Dial(ctx, "tcp", host.Address.String()+":10250")
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	// The test compares the certificate itself.
	client := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
	if err := client.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	return client.ConnectionState().PeerCertificates[0], nil
}

// TestNodeRenewsItsCertificates follows 3.11 Cluster Administration, 2.11: the kubelet rotates its
// client and serving certificates. Other node components also renew their certificates.
func TestNodeRenewsItsCertificates(t *testing.T) {
	c := kit.Start(t, kit.Options{Segment: true, Master: shortLifetime})
	host := c.Join(second, kit.Options{})
	waitNodeReady(c, second)
	paths, err := filepath.Glob(host.Path("pki", "*", "*-current.pem"))
	if err != nil || len(paths) < 3 {
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
}
