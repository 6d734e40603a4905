// Package certificate validates route certificates before HAProxy loads them. If HAProxy cannot
// load one certificate, it serves no routes at all.
//
// Source: OpenShift Container Platform 3.9 Architecture, EXTENDED_VALIDATION. The validation checks
// the structure of certificates, but not whether they are trusted.
package certificate

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	routev1 "github.com/openshift/api/route/v1"
)

// minRSABits is the minimum size of RSA keys that OpenSSL accepts, in bits.
const minRSABits = 2048

// Check reports problems with a route's certificates. A route without certificates has no problems.
// Check accepts expired certificates and certificates for other hosts, because clients verify these
// properties.
func Check(config *routev1.TLSConfig) error {
	if config == nil {
		return nil
	}
	var problems []error
	if config.Certificate != "" || config.Key != "" {
		if _, err := Bundle(config); err != nil {
			problems = append(problems, fmt.Errorf("spec.tls.certificate: %w", err))
		}
	}
	for _, part := range []struct{ name, text string }{
		{"caCertificate", config.CACertificate}, {"destinationCACertificate", config.DestinationCACertificate},
	} {
		if _, err := Authorities(part.text); part.text != "" && err != nil {
			problems = append(problems, fmt.Errorf("spec.tls.%s: %w", part.name, err))
		}
	}
	return errors.Join(problems...)
}

// Bundle returns a route's certificate, chain and key as PEM text without any other content. The
// key can follow the certificate in the route's certificate field.
func Bundle(config *routev1.TLSConfig) ([]byte, error) {
	chain := []byte(config.Certificate + "\n" + config.CACertificate)
	key := []byte(config.Key)
	if config.Key == "" {
		key = []byte(config.Certificate)
	}
	return Pair(chain, key)
}

// Pair returns a certificate chain and the key of its first certificate as PEM text.
func Pair(chain, key []byte) ([]byte, error) {
	pair, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return nil, err
	}
	var bundle bytes.Buffer
	for i, der := range pair.Certificate {
		certificate, err := x509.ParseCertificate(der)
		if err != nil {
			return nil, err
		}
		if err := strong(certificate); err != nil {
			return nil, err
		}
		if i > 0 && bytes.Equal(der, pair.Certificate[0]) {
			continue
		}
		// Writing to a buffer never fails.
		_ = pem.Encode(&bundle, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		return nil, errors.New("its key has an unsupported type") // the error must omit the key
	}
	_ = pem.Encode(&bundle, &pem.Block{Type: "PRIVATE KEY", Bytes: secret})
	return bundle.Bytes(), nil
}

// Authorities returns the certificates in PEM text and omits all other content.
func Authorities(text string) ([]byte, error) {
	var bundle bytes.Buffer
	for rest := []byte(text); ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return nil, err
		}
		_ = pem.Encode(&bundle, &pem.Block{Type: block.Type, Bytes: block.Bytes})
	}
	if bundle.Len() == 0 {
		return nil, errors.New("it contains no certificate in PEM")
	}
	return bundle.Bytes(), nil
}

// Nobody returns the certificate of a new CA in PEM format. The CA's key is discarded, so the CA
// never signs a certificate.
func Nobody() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "nobody"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(100, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// strong returns an error if OpenSSL does not load the certificate at its default security level.
func strong(certificate *x509.Certificate) error {
	if key, is := certificate.PublicKey.(*rsa.PublicKey); is && key.N.BitLen() < minRSABits {
		return fmt.Errorf("its RSA key has %d bits; at least %d are needed", key.N.BitLen(), minRSABits)
	}
	switch certificate.SignatureAlgorithm {
	case x509.MD2WithRSA, x509.MD5WithRSA, x509.SHA1WithRSA, x509.DSAWithSHA1, x509.ECDSAWithSHA1:
		// Clients do not verify the signature of a root certificate.
		if !bytes.Equal(certificate.RawIssuer, certificate.RawSubject) {
			return fmt.Errorf("it is signed with %s, which is insecure", certificate.SignatureAlgorithm)
		}
	}
	return nil
}
