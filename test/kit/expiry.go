package kit

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// ExpireCertificates replaces all certificates of a stopped host, except certificate authorities,
// with certificates that expired a day ago. The host then appears to have been off for years.
// master is a host that has the authorities' private keys.
func (c *Cluster) ExpireCertificates(master *Cluster) {
	c.t.Helper()
	var authorities []tls.Certificate
	for _, name := range []string{"ca", "frontproxy-ca", "master.etcd-ca", "service-signer"} {
		pair, err := tls.LoadX509KeyPair(master.Path("pki", name+".crt"), master.Path("pki", name+".key"))
		if err != nil {
			c.t.Fatal(err)
		}
		authorities = append(authorities, pair)
	}
	count := 0
	err := filepath.WalkDir(c.Path("pki"), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".crt", ".pem"}, filepath.Ext(path)) || !entry.Type().IsRegular() {
			return err
		}
		count++
		return expire(path, authorities)
	})
	if err != nil || count == 0 {
		c.t.Fatalf("expire %d certificates: %v", count, err)
	}
}

// expire replaces the certificates in a file with expired certificates. It keeps the private keys.
func expire(path string, authorities []tls.Certificate) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var replaced []byte
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type == "CERTIFICATE" {
			if block.Bytes, err = expired(block.Bytes, authorities); err != nil {
				return fmt.Errorf("expire certificate in %s: %w", path, err)
			}
		}
		replaced = append(replaced, pem.EncodeToMemory(block)...)
	}
	return os.WriteFile(path, replaced, 0o600)
}

// expired returns a copy of a certificate that expired a day ago. It returns a certificate
// authority unchanged.
func expired(der []byte, authorities []tls.Certificate) ([]byte, error) {
	cert, err := x509.ParseCertificate(der)
	if err != nil || cert.IsCA {
		return der, err
	}
	for _, authority := range authorities {
		if cert.CheckSignatureFrom(authority.Leaf) != nil {
			continue
		}
		cert.NotBefore, cert.NotAfter = time.Now().Add(-48*time.Hour), time.Now().Add(-24*time.Hour)
		return x509.CreateCertificate(rand.Reader, cert, authority.Leaf, cert.PublicKey, authority.PrivateKey)
	}
	return nil, fmt.Errorf("no authority has signed %q", cert.Subject)
}
