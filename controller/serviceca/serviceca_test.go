package serviceca

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"maps"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/controller"
)

// cluster runs the service controller with a fake API server. Each step fills the cache first.
type cluster struct {
	*Certificates
	t      *testing.T
	server *fake.Clientset
}

func newCluster(t *testing.T, objects ...runtime.Object) *cluster {
	t.Helper()
	dir, server := t.TempDir(), fake.NewClientset(objects...)
	now := time.Now()
	c := &cluster{t: t, server: server, Certificates: &Certificates{
		CertFile: filepath.Join(dir, "signer.crt"), KeyFile: filepath.Join(dir, "signer.key"), BundleFile: filepath.Join(dir, "bundle.crt"),
		client: server, services: cache.NewSharedIndexInformer(nil, &corev1.Service{}, 0, cache.Indexers{}),
		Now: func() time.Time { return now },
	}}
	c.sign("first", now.AddDate(10, 0, 0))
	return c
}

// sign creates a signer that is valid until the given time, and replaces the signer's files.
func (c *cluster) sign(name string, until time.Time) {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: c.now().Add(-time.Hour), NotAfter: until,
		KeyUsage: x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		c.t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		c.t.Fatal(err)
	}
	for path, content := range map[string][]byte{c.CertFile: encode("CERTIFICATE", der), c.BundleFile: encode("CERTIFICATE", der), c.KeyFile: encode("EC PRIVATE KEY", secret)} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			c.t.Fatal(err)
		}
	}
}

func web(annotations map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "1", Annotations: annotations}}
}

func (c *cluster) service() *corev1.Service {
	c.t.Helper()
	service, err := c.server.CoreV1().Services("shop").Get(context.Background(), "web", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return service
}

func (c *cluster) secret() *corev1.Secret {
	c.t.Helper()
	secret, err := c.server.CoreV1().Secrets("shop").Get(context.Background(), "web-tls", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return secret
}

// step reconciles the service and returns the result.
func (c *cluster) step() error {
	c.t.Helper()
	service := c.service()
	err := c.services.GetIndexer().Replace([]any{service}, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return c.certify(context.Background(), controller.Key{Namespace: "shop", Name: "web"})
}

// servedCertificate returns the certificate in the secret after verifying it for a host against the
// bundle.
func (c *cluster) servedCertificate(host string) *x509.Certificate {
	c.t.Helper()
	bundle, err := os.ReadFile(c.BundleFile)
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(bundle)
	block, _ := pem.Decode(c.secret().Data[corev1.TLSCertKey])
	cert, err := x509.ParseCertificate(block.Bytes)
	if err == nil {
		_, err = cert.Verify(x509.VerifyOptions{Roots: roots, DNSName: host, CurrentTime: c.now()})
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return cert
}

func requestAnnotations(prefix int) map[string]string {
	return map[string]string{prefixes()[prefix] + secretName: "web-tls"}
}

func TestCertificateIsIssued(t *testing.T) {
	for _, prefix := range []int{0, 1} {
		c := newCluster(t, web(requestAnnotations(prefix)))
		err := c.step()
		if want := controller.RequeueAfter(recheckInterval).Error(); err == nil || err.Error() != want {
			t.Fatalf("step: got %v", err)
		}
		first := c.servedCertificate("web.shop.svc")
		c.servedCertificate("web.shop.svc.cluster.local")
		secret, service := c.secret(), c.service()
		if secret.Type != corev1.SecretTypeTLS || len(secret.Data) != 2 {
			t.Errorf("got a secret of type %s with %d keys", secret.Type, len(secret.Data))
		}
		want := map[string]string{}
		for _, p := range prefixes() {
			want[p+serviceUID], want[p+serviceName], want[p+expiry] = string(service.UID), "web", first.NotAfter.UTC().Format(time.RFC3339)
		}
		if !maps.Equal(secret.Annotations, want) {
			t.Errorf("got annotations %v of the secret", secret.Annotations)
		}
		if o := secret.OwnerReferences; len(o) != 1 || o[0].Kind != "Service" || o[0].UID != service.UID {
			t.Errorf("got owners %v", o)
		}
		for _, p := range prefixes() {
			if service.Annotations[p+signedBy] != "first" {
				t.Errorf("got annotations %v of the service", service.Annotations)
			}
		}
		_ = c.step()
		if !c.servedCertificate("web.shop.svc").Equal(first) {
			t.Error("a valid certificate was reissued")
		}
	}
}

func TestCertificateIsReissued(t *testing.T) {
	for name, change := range map[string]func(*cluster){
		"a third of the lifetime is left": func(c *cluster) {
			now := c.now().Add(lifetime * 3 / 4)
			c.Now = func() time.Time { return now }
		},
		"another signer": func(c *cluster) { c.sign("second", c.now().AddDate(10, 0, 0)) },
		"damaged": func(c *cluster) {
			secret := c.secret()
			secret.Data[corev1.TLSPrivateKeyKey] = []byte("none")
			if _, err := c.server.CoreV1().Secrets("shop").Update(context.Background(), secret, metav1.UpdateOptions{}); err != nil {
				c.t.Fatal(err)
			}
		},
		"removed": func(c *cluster) {
			if err := c.server.CoreV1().Secrets("shop").Delete(context.Background(), "web-tls", metav1.DeleteOptions{}); err != nil {
				c.t.Fatal(err)
			}
		},
		"the service was recreated": func(c *cluster) {
			service := c.service()
			service.UID = "another"
			if _, err := c.server.CoreV1().Services("shop").Update(context.Background(), service, metav1.UpdateOptions{}); err != nil {
				c.t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, web(requestAnnotations(0)))
			_ = c.step()
			first := c.servedCertificate("web.shop.svc")
			change(c)
			_ = c.step()
			second := c.servedCertificate("web.shop.svc")
			if second.Equal(first) {
				t.Error("the certificate was not reissued")
			}
			if o := c.secret().OwnerReferences; len(o) != 1 || o[0].UID != c.service().UID {
				t.Errorf("got owners %v", o)
			}
		})
	}
}

func TestCertificateExpiresWithSigner(t *testing.T) {
	c := newCluster(t, web(requestAnnotations(0)))
	c.sign("short", c.now().Add(24*time.Hour))
	_ = c.step()
	first := c.servedCertificate("web.shop.svc")
	_ = c.step()
	if !c.servedCertificate("web.shop.svc").Equal(first) {
		t.Error("a certificate that expires with its signer is reissued each time")
	}
}

func TestUnrelatedSecretIsNotOverwritten(t *testing.T) {
	unrelated := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-tls"}, Type: corev1.SecretTypeTLS}
	c := newCluster(t, web(requestAnnotations(0)), unrelated)
	for _, want := range []string{"1", "2"} {
		err := c.step()
		if err == nil || err.Error() == controller.RequeueAfter(recheckInterval).Error() {
			t.Fatalf("step: got %v", err)
		}
		for _, p := range prefixes() {
			if got := c.service().Annotations; got[p+failureCount] != want || got[p+failureMessage] == "" {
				t.Errorf("got annotations %v", got)
			}
		}
	}
	if len(c.secret().Data) > 0 {
		t.Error("the secret was overwritten")
	}
	if err := c.server.CoreV1().Secrets("shop").Delete(context.Background(), "web-tls", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	_ = c.step()
	c.servedCertificate("web.shop.svc")
	for _, p := range prefixes() {
		if got := c.service().Annotations; got[p+failureCount] != "" || got[p+failureMessage] != "" {
			t.Errorf("got annotations %v", got)
		}
	}
}

func TestInvalidSecretName(t *testing.T) {
	c := newCluster(t, web(map[string]string{prefixes()[0] + secretName: "../web"}))
	_ = c.step()
	if got := c.service().Annotations[prefixes()[0]+failureMessage]; !strings.Contains(got, `"../web" is not a valid name of a secret`) {
		t.Errorf("got message %q", got)
	}
}

func TestFailureCountIsLimited(t *testing.T) {
	c := newCluster(t, web(requestAnnotations(0)))
	c.server.PrependReactor("create", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(corev1.Resource("secrets"), "web-tls", errors.New("exceeded quota"))
	})
	for range maxFailures + 3 {
		_ = c.step()
	}
	if got := c.service().Annotations[prefixes()[0]+failureCount]; got != "10" {
		t.Errorf("got a count of %s failures, want 10", got)
	}
}
