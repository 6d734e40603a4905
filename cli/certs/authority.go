package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// serialBits is the size of random serial numbers, in bits. RFC 5280 allows up to 159 bits.
const serialBits = 127

// authority is a CA that signs certificates. The fields contain the paths of the CA's files. If
// serial is "", the CA uses random serial numbers.
type authority struct {
	cert, key, serial string
}

// create writes the files of a new CA with a self-signed certificate. If there is a serial file,
// the certificate's serial number is 1, and create writes this number to the file. Otherwise, the
// serial number is random.
func (a authority) create(name string, days int) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of authority %q: %w", name, err)
	}
	serial := big.NewInt(1)
	if a.serial == "" {
		if serial, err = randomSerial(); err != nil {
			return err
		}
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	setLifetime(template, days)
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return fmt.Errorf("sign authority %q: %w", name, err)
	}
	if err := writePair(a.cert, a.key, der, key); err != nil {
		return err
	}
	if a.serial == "" {
		return nil
	}
	return writeFile(a.serial, []byte("01\n"), 0o644)
}

// exists reports whether the CA's certificate and key exist.
func (a authority) exists() bool { return fileExists(a.cert) && fileExists(a.key) }

// check returns an error if one of the CA's files is missing. The error contains the flag that sets
// the file's path.
func (a authority) check() error {
	for flag, path := range map[string]string{"signer-cert": a.cert, "signer-key": a.key} {
		if !fileExists(path) {
			return fmt.Errorf("--%s, %q must be a valid file: create it with: oc adm ca create-signer-cert", flag, path)
		}
	}
	if a.serial != "" && !fileExists(a.serial) {
		return fmt.Errorf("--signer-serial, %q must be a valid file", a.serial)
	}
	return nil
}

// request describes a serving or client certificate.
type request struct {
	name          string
	organizations []string
	// hosts contains the host names and IP addresses of a server. It is empty for a client.
	hosts []string
	days  int
}

// issue creates a key, signs a certificate for it, and writes both files.
func (a authority) issue(r request, cert, key string) error {
	pair, err := tls.LoadX509KeyPair(a.cert, a.key)
	if err != nil {
		return fmt.Errorf("read signer %q: %w", a.cert, err)
	}
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("generate key of %q: %w", r.name, err)
	}
	serial, err := a.nextSerial()
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          serial,
		Subject:               pkix.Name{CommonName: r.name, Organization: r.organizations},
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		BasicConstraintsValid: true,
	}
	if len(r.hosts) > 0 {
		template.ExtKeyUsage[0] = x509.ExtKeyUsageServerAuth
	}
	for _, host := range r.hosts {
		if ip := net.ParseIP(host); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
			continue
		}
		template.DNSNames = append(template.DNSNames, host)
	}
	setLifetime(template, r.days)
	der, err := x509.CreateCertificate(rand.Reader, template, pair.Leaf, caKey.Public(), pair.PrivateKey)
	if err != nil {
		return fmt.Errorf("sign certificate of %q: %w", r.name, err)
	}
	return writePair(cert, key, der, caKey)
}

// nextSerial returns the next serial number. It also writes the number to the serial file, in
// hexadecimal with at least two digits. Without a serial file, the number is random.
func (a authority) nextSerial() (*big.Int, error) {
	if a.serial == "" {
		return randomSerial()
	}
	text, err := os.ReadFile(a.serial)
	if err != nil {
		return nil, fmt.Errorf("read serial file: %w", err)
	}
	last, err := strconv.ParseInt(strings.TrimSpace(string(text)), 16, 64)
	if err != nil {
		return nil, fmt.Errorf("read serial file %q: must contain a hexadecimal number", a.serial)
	}
	content := fmt.Appendf(nil, "%02X\n", last+1)
	return big.NewInt(last + 1), writeFile(a.serial, content, 0o644)
}

func randomSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), serialBits))
}

// setLifetime makes a certificate valid for the given number of days. To tolerate clock skew, the
// validity starts one second in the past.
func setLifetime(template *x509.Certificate, days int) {
	template.NotBefore = time.Now().Add(-time.Second)
	template.NotAfter = time.Now().AddDate(0, 0, days)
}

// writePair writes a certificate and its private key. The key file is readable only by its owner.
func writePair(cert, key string, der []byte, private crypto.Signer) error {
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return fmt.Errorf("encode key: %w", err)
	}
	return errors.Join(
		writeFile(key, encodePEM("PRIVATE KEY", encoded), 0o600),
		writeFile(cert, encodePEM("CERTIFICATE", der), 0o644),
	)
}

// writeFile writes a file, and creates its directory if it is missing.
func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create directory of %q: %w", path, err)
	}
	return atomicfile.Write(path, content, mode)
}

func fileExists(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
