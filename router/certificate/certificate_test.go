package certificate

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// small returns PEM data with a certificate for a 1024-bit RSA key, followed by the key.
func small(t *testing.T) string {
	t.Helper()
	t.Setenv("GODEBUG", "rsa1024min=0")
	key, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})) +
		string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)}))
}

func TestCheckConfirmsStructure(t *testing.T) {
	authority := certtest.New(t)
	pair, other := authority.Issue(t, "a"), authority.Issue(t, "b")
	certificate, key := read(t, pair.CertFile), read(t, pair.KeyFile)
	for name, tt := range map[string]struct {
		config routev1.TLSConfig
		want   string // text in the error
	}{
		"none":                          {routev1.TLSConfig{}, ""},
		"pair":                          {routev1.TLSConfig{Certificate: certificate, Key: key}, ""},
		"key behind":                    {routev1.TLSConfig{Certificate: certificate + key}, ""},
		"text between the certificates": {routev1.TLSConfig{Certificate: "hello\n" + certificate + "bind *:1\n", Key: key}, ""},
		"with authority":                {routev1.TLSConfig{Certificate: certificate, Key: key, CACertificate: read(t, authority.File)}, ""},
		"key of another certificate":    {routev1.TLSConfig{Certificate: certificate, Key: read(t, other.KeyFile)}, "spec.tls.certificate: tls: private key does not match"},
		"no key":                        {routev1.TLSConfig{Certificate: certificate}, "spec.tls.certificate"},
		"no PEM":                        {routev1.TLSConfig{Certificate: "x", Key: "y"}, "spec.tls.certificate"},
		"broken authority":              {routev1.TLSConfig{CACertificate: "x"}, "spec.tls.caCertificate"},
		"broken destination":            {routev1.TLSConfig{DestinationCACertificate: "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "spec.tls.destinationCACertificate"},
		"small key":                     {routev1.TLSConfig{Certificate: small(t)}, "1024 bits"},
		"valid destination CA":          {routev1.TLSConfig{DestinationCACertificate: read(t, authority.File)}, ""},
	} {
		err := Check(&tt.config)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE") {
			t.Errorf("%s: the error shows the key", name)
		}
	}
	bundle, err := Bundle(&routev1.TLSConfig{Certificate: "bind *:1\n" + certificate, Key: key})
	if err != nil || strings.Contains(string(bundle), "bind") || strings.Count(string(bundle), "BEGIN") != 2 {
		t.Errorf("bundle is %q: %v", bundle, err)
	}
}
