package hosts

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/pki/join"
)

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// newCertificate returns a self-signed certificate.
func newCertificate(t testing.TB, subject pkix.Name, notBefore time.Time) *x509.Certificate {
	t.Helper()
	key := newKey(t)
	return sign(t, &x509.Certificate{Subject: subject, NotBefore: notBefore}, nil, key, key)
}

func encodeCertificate(cert *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw})
}

// fixture is a cluster with a node named "master" and join tokens.
type fixture struct {
	client    kubernetes.Interface
	tokens    Tokens
	register  register
	authority []byte
	signer    *x509.Certificate
	key       *ecdsa.PrivateKey // the signer's key
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	client := fake.NewClientset(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "master"},
		Status:     corev1.NodeStatus{Addresses: []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}}},
	})
	key := newKey(t)
	signer := sign(t, &x509.Certificate{Subject: pkix.Name{CommonName: "signer"}, NotBefore: time.Now().Add(-time.Hour), IsCA: true, BasicConstraintsValid: true}, nil, key, key)
	return fixture{client, Tokens{client}, register{client}, encodeCertificate(signer), signer, key}
}

// issue returns a client certificate that the cluster's CA has signed.
func (f fixture) issue(t *testing.T, subject pkix.Name, issued time.Time) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{Subject: subject, NotBefore: issued.Add(-backdating), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	return sign(t, template, f.signer, newKey(t), f.key)
}

// sign returns a certificate for a key. Without a parent, the certificate is self-signed.
func sign(t testing.TB, template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) *x509.Certificate {
	t.Helper()
	template.SerialNumber, template.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

// createToken stores a token that one node can use and that is valid for the given duration.
func (f fixture) createToken(t *testing.T, valid time.Duration) join.Token {
	t.Helper()
	return f.createTokenWith(t, TokenInfo{Role: join.RoleNode, Group: "infra", Uses: 1, Expiry: time.Now().Add(valid)})
}

// createTokenWith stores a token with the given properties.
func (f fixture) createTokenWith(t *testing.T, info TokenInfo) join.Token {
	t.Helper()
	token, err := join.New(f.authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.tokens.Create(context.Background(), token, info); err != nil {
		t.Fatal(err)
	}
	// Unlike the API server, the fake client does not move stringData to data.
	secrets := f.client.CoreV1().Secrets(namespace)
	secret, err := secrets.Get(t.Context(), secretName(token.ID), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	secret.Data = map[string][]byte{}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
	if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	return token
}
