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

// authority signs the certificates of services.
type authority struct {
	cert *x509.Certificate
	key  crypto.PrivateKey
	now  time.Time
}

// lifetime is how long certificates of services are valid, as in OpenShift 3: two years, if the authority lasts as long.
const lifetime = 2 * 365 * 24 * time.Hour

// renewalDivisor: a certificate is issued anew when less than a third of its life is left.
const renewalDivisor = 3

// maxCommonName is the length of a common name that every reader takes. Readers of today look at the list of names.
const maxCommonName = 64

func (c *Certificates) authority() (*authority, error) {
	pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read signer of services' certificates: %w", err)
	}
	return &authority{cert: pair.Leaf, key: pair.PrivateKey, now: c.now()}, nil
}

func (a *authority) name() string { return a.cert.Subject.CommonName }

// issued is a certificate with the authority behind it, and its key, in PEM.
type issued struct {
	chain, key []byte
	expiry     time.Time
}

// issue makes a certificate for hosts.
func (a *authority) issue(hosts []string) (*issued, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return nil, fmt.Errorf("choose serial number: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial.Add(serial, big.NewInt(2)), // 1 is the authority's
		DNSNames:     hosts, NotBefore: a.now.Add(-time.Hour), NotAfter: a.now.Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	if len(hosts[0]) <= maxCommonName {
		template.Subject = pkix.Name{CommonName: hosts[0]}
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		template.NotAfter = a.cert.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate: %w", err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode key: %w", err)
	}
	chain := append(encode("CERTIFICATE", der), encode("CERTIFICATE", a.cert.Raw)...)
	return &issued{chain, encode("EC PRIVATE KEY", secret), template.NotAfter}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// good reports whether a secret holds a certificate of this authority for hosts that can be used for some time to come.
func (a *authority) good(data map[string][]byte, hosts []string) bool {
	pair, err := tls.X509KeyPair(data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return false
	}
	cert := pair.Leaf
	renewal := cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / renewalDivisor)
	return cert.CheckSignatureFrom(a.cert) == nil && slices.Equal(cert.DNSNames, hosts) && !a.now.Before(cert.NotBefore) &&
		(a.now.Before(renewal) || a.now.Before(cert.NotAfter) && !cert.NotAfter.Before(a.cert.NotAfter))
}
