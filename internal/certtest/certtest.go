// Package certtest creates CAs and certificates for tests.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority is a CA that issues certificates.
type Authority struct {
	// Certificate is the CA's own certificate. File is the path of its PEM file.
	Certificate *x509.Certificate
	File        string

	key *ecdsa.PrivateKey
}

// Pair is a certificate, with the paths of its PEM file and its key file.
type Pair struct {
	Certificate       *x509.Certificate
	CertFile, KeyFile string
}

// New creates a CA that is valid for an hour.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{}
	pair := a.issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	})
	a.Certificate, a.File = pair.Certificate, pair.CertFile
	return a
}

// Pool returns a certificate pool that contains only this CA.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.Certificate)
	return pool
}

// Issue issues a certificate for a client and server with the given name. The certificate is valid
// for localhost, 127.0.0.1 and additional hosts, which are names or addresses.
func (a *Authority) Issue(t testing.TB, name string, hosts ...string) Pair {
	t.Helper()
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
		KeyUsage:    x509.KeyUsageDigitalSignature,
	}
	for _, host := range hosts {
		if address := net.ParseIP(host); address != nil {
			template.IPAddresses = append(template.IPAddresses, address)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	return a.issue(t, template)
}

// IssueExpired issues a serving certificate that expired a minute ago.
func (a *Authority) IssueExpired(t testing.TB, host string) Pair {
	t.Helper()
	return a.issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: host}, DNSNames: []string{host}, NotAfter: time.Now().Add(-time.Minute)})
}

// issue signs a template. The certificate is self-signed if the CA has no certificate yet.
func (a *Authority) issue(t testing.TB, template *x509.Certificate) Pair {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template.SerialNumber, err = rand.Int(rand.Reader, big.NewInt(1<<62))
	must(t, err)
	template.NotBefore = time.Now().Add(-time.Hour)
	if template.NotAfter.IsZero() {
		template.NotAfter = time.Now().Add(time.Hour)
	}
	parent, signer := a.Certificate, a.key
	if parent == nil {
		parent, signer, a.key = template, key, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(t, err)
	certificate, err := x509.ParseCertificate(der)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	must(t, err)
	dir := t.TempDir()
	pair := Pair{Certificate: certificate, CertFile: filepath.Join(dir, "cert.pem"), KeyFile: filepath.Join(dir, "key.pem")}
	write(t, pair.CertFile, "CERTIFICATE", der)
	write(t, pair.KeyFile, "PRIVATE KEY", secret)
	return pair
}

func write(t testing.TB, path, kind string, der []byte) {
	t.Helper()
	must(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
