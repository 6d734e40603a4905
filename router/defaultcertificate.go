package router

import (
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/router/certificate"
	"github.com/slipway-platform/slipway/router/environment"
)

// defaultCertificate returns the certificate and key for hosts without their own certificate. The
// sources, in order of precedence, are
//
//   - DEFAULT_CERTIFICATE,
//   - the file at DEFAULT_CERTIFICATE_PATH,
//   - tls.crt and tls.key in DEFAULT_CERTIFICATE_DIR, and
//   - a self-signed certificate, which is generated once and stored in a file.
func defaultCertificate(s environment.Settings, file string) ([]byte, error) {
	text, dir := []byte(s.Text("DEFAULT_CERTIFICATE")), s.Text("DEFAULT_CERTIFICATE_DIR")
	switch path := s.Text("DEFAULT_CERTIFICATE_PATH"); {
	case len(text) > 0:
		return pair("DEFAULT_CERTIFICATE", text, text)
	case path != "":
		return pairFile("DEFAULT_CERTIFICATE_PATH", path, path)
	case dir != "":
		return pairFile("DEFAULT_CERTIFICATE_DIR", filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
	}
	if pem, err := pairFile("default certificate", file, file); err == nil {
		return pem, nil
	}
	generated, err := selfSigned()
	if err != nil {
		return nil, fmt.Errorf("create default certificate: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, fmt.Errorf("store default certificate: %w", err)
	}
	return generated, atomicfile.Write(file, generated, 0o600)
}

func pairFile(variable, path, keyPath string) ([]byte, error) {
	chain, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	key, err := os.ReadFile(keyPath)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	return pair(variable, chain, []byte(cmp.Or(string(key), string(chain))))
}

// pair returns the certificate chain and its key. A key in the certificate's file takes precedence.
func pair(variable string, chain, key []byte) ([]byte, error) {
	if bundle, err := certificate.Pair(chain, chain); err == nil {
		return bundle, nil
	}
	bundle, err := certificate.Pair(chain, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", variable, err)
	}
	return bundle, nil
}

// selfSigned generates a self-signed certificate that is valid for ten years.
func selfSigned() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "router default"}, DNSNames: []string{"*.router.default.svc.cluster.local"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(10, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	return append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...), nil
}
