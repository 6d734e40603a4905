package serviceca

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// signer signs serving certificates for services.
type signer struct {
	cert *x509.Certificate
	key  crypto.PrivateKey
	now  time.Time
}

// lifetime is the maximum lifetime of a certificate: two years, as in OpenShift 3. A certificate
// never outlives the signer.
const lifetime = 2 * 365 * 24 * time.Hour

// renewalDivisor determines when a certificate is renewed: when one third of its lifetime remains.
const renewalDivisor = 3

// maxCommonName is the maximum length of a common name, in characters (RFC 5280, ub-common-name).
// Current clients use the subject alternative names.
const maxCommonName = 64

func (c *Certificates) loadSigner() (*signer, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read service certificate signer: %w", err)
	}
	return &signer{cert: pair.Leaf, key: pair.PrivateKey, now: c.now()}, nil
}

func (s *signer) name() string { return s.cert.Subject.CommonName }

// certificate contains a certificate chain and its key in PEM format.
type certificate struct {
	chain, key []byte
	expiry     time.Time
}

// issue issues a certificate for the given hosts.
func (s *signer) issue(hosts []string) (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	template := &x509.Certificate{
		// Skip 0, and 1, which is the serial number of the signer's own certificate.
		SerialNumber: serial.Add(serial, big.NewInt(2)),
		DNSNames:     hosts, NotBefore: s.now.Add(-time.Hour), NotAfter: s.now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if len(hosts[0]) <= maxCommonName {
		template.Subject = pkix.Name{CommonName: hosts[0]}
	}
	if template.NotAfter.After(s.cert.NotAfter) {
		template.NotAfter = s.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, s.cert, key.Public(), s.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	chain := append(encode("CERTIFICATE", der), encode("CERTIFICATE", s.cert.Raw)...)
	return &certificate{chain, encode("EC PRIVATE KEY", secret), template.NotAfter}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// isCurrent reports whether a secret contains a certificate for the given hosts that this signer
// has issued and that is not due for renewal.
func (s *signer) isCurrent(data map[string][]byte, hosts []string) bool {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return false
	}
	cert := pair.Leaf
	renewal := cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / renewalDivisor)
	return cert.CheckSignatureFrom(s.cert) == nil && slices.Equal(cert.DNSNames, hosts) && !s.now.Before(cert.NotBefore) &&
		(s.now.Before(renewal) || s.now.Before(cert.NotAfter) && !cert.NotAfter.Before(s.cert.NotAfter))
}
