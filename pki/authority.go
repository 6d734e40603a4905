package pki

import (
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// backdated is how far the certificates of authorities are backdated, because the clocks of other
// machines might be behind this host's clock.
const backdated = time.Hour

// Backdating is how far all other certificates are backdated. Kubernetes' signers use the same
// value, so the time at which any certificate was issued can be derived from its NotBefore time.
const Backdating = 5 * time.Minute

// authority is a certificate authority.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// authoritySpec describes a certificate authority.
type authoritySpec struct {
	files Pair
	name  string
	// replaceable means that Ensure can replace the authority: only the cluster itself uses it, and
	// its clients reload the CA bundle.
	replaceable bool
}

// authoritySpecs returns the certificate authorities. name is the first part of a certificate's
// common name.
func (i *issuer) authoritySpecs() []authoritySpec {
	return []authoritySpec{
		{files: i.credentials.CA, name: "openshift-signer"},
		{files: i.credentials.FrontProxyCA, name: "frontproxy-signer"},
		{files: i.credentials.EtcdCA, name: "etcd-signer"},
		{files: i.credentials.ServiceSigner, name: "openshift-service-serving-signer", replaceable: true},
	}
}

// checkAuthorities returns an error if an authority that Ensure must not replace is invalid.
func (i *issuer) checkAuthorities() error {
	for _, a := range i.authoritySpecs() {
		if a.replaceable {
			continue
		}
		if err := i.checkAuthority(a.files); err != nil {
			return err
		}
	}
	return nil
}

func (i *issuer) checkAuthority(files Pair) error {
	cert, certErr := readCertificate(files.Cert)
	key, keyErr := readKey(files.Key)
	if errors.Is(certErr, fs.ErrNotExist) && !i.hasLeaf(files) {
		return nil // the first start has not completed, so nothing depends on the authority yet
	}
	remedy := fmt.Sprintf("restore %q and %q from a backup, or remove the directory %q to create new credentials "+
		"(every kubeconfig and token in use then becomes invalid)", files.Cert, files.Key, i.spec.Dir)
	switch {
	case certErr != nil:
		return fmt.Errorf("read certificate authority %q: %w; %s", files.Cert, withoutPath(certErr), remedy)
	case keyErr != nil:
		return fmt.Errorf("read key of certificate authority %q: %w; %s", files.Key, withoutPath(keyErr), remedy)
	case !cert.IsCA:
		return fmt.Errorf("read certificate authority %q: it is not a CA certificate; %s", files.Cert, remedy)
	case !samePublicKey(cert.PublicKey, key.Public()):
		return fmt.Errorf("read certificate authority %q: the key %q belongs to another certificate; %s", files.Cert, files.Key, remedy)
	}
	now := i.spec.Now()
	if now.After(cert.NotAfter) {
		return fmt.Errorf("read certificate authority %q: it expired on %s, and it is now %s; set the machine's clock, or remove the directory %q to create new credentials",
			files.Cert, cert.NotAfter.Format(time.RFC3339), now.Format(time.RFC3339), i.spec.Dir)
	}
	if now.Before(cert.NotBefore) {
		return fmt.Errorf("read certificate authority %q: it is valid from %s, and it is now %s; set the machine's clock",
			files.Cert, cert.NotBefore.Format(time.RFC3339), now.Format(time.RFC3339))
	}
	return nil
}

// hasLeaf reports whether any certificate that the authority signed exists.
func (i *issuer) hasLeaf(files Pair) bool {
	for _, l := range i.leaves() {
		if _, err := os.Lstat(l.files.Cert); l.authority == files && err == nil {
			return true
		}
	}
	return false
}

// ensureAuthorities loads the authorities and creates missing authorities.
func (i *issuer) ensureAuthorities() error {
	i.authorities = map[string]*authority{}
	for _, a := range i.authoritySpecs() {
		key := i.keys[a.files.Key]
		cert, err := readCertificate(a.files.Cert)
		if err != nil || a.replaceable && !i.serves(cert, key) {
			if cert, err = i.signAuthority(a, key); err != nil {
				return err
			}
		}
		i.authorities[a.files.Cert] = &authority{cert: cert, key: key}
		if i.credentials.CAExpiry.IsZero() || cert.NotAfter.Before(i.credentials.CAExpiry) {
			i.credentials.CAExpiry = cert.NotAfter
		}
	}
	ca, err := os.ReadFile(i.credentials.CA.Cert)
	if err != nil {
		return fmt.Errorf("read certificate authority: %w", err)
	}
	if _, err = writeIfDifferent(i.credentials.NodeCA, ca, public); err != nil {
		return err
	}
	return i.ensureServiceCA()
}

// serves reports whether a replaceable authority is valid and not due for renewal.
func (i *issuer) serves(cert *x509.Certificate, key crypto.Signer) bool {
	now := i.spec.Now()
	renewal := cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / renewalDivisor)
	return cert.IsCA && samePublicKey(cert.PublicKey, key.Public()) && !now.Before(cert.NotBefore) && now.Before(renewal)
}

// ensureServiceCA writes the CA bundle that verifies services' certificates: first the signer's
// certificate, then the unexpired certificates of earlier signers. Certificates that earlier
// signers issued might still be in use.
func (i *issuer) ensureServiceCA() error {
	signer := i.authorities[i.credentials.ServiceSigner.Cert].cert
	bundle := encodePEM("CERTIFICATE", signer.Raw)
	previous, err := os.ReadFile(i.credentials.ServiceCA)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read service CAs: %w", err)
	}
	for block, rest := pem.Decode(previous); block != nil; block, rest = pem.Decode(rest) {
		cert, err := x509.ParseCertificate(block.Bytes)
		if err == nil && !cert.Equal(signer) && i.spec.Now().Before(cert.NotAfter) {
			bundle = append(bundle, encodePEM("CERTIFICATE", cert.Raw)...)
		}
	}
	_, err = writeIfDifferent(i.credentials.ServiceCA, bundle, public)
	return err
}

// signAuthority writes a self-signed certificate. As in OpenShift, the certificate's name contains
// the current time, which distinguishes an authority from its successor.
func (i *issuer) signAuthority(a authoritySpec, key crypto.Signer) (*x509.Certificate, error) {
	now := i.spec.Now()
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: fmt.Sprintf("%s@%d", a.name, now.Unix())},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(i.spec.CALifetime),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("sign certificate authority %q: %w", a.files.Cert, err)
	}
	if err := atomicfile.Write(a.files.Cert, encodePEM("CERTIFICATE", der), public); err != nil {
		return nil, err
	}
	i.record(a.files.Cert)
	return x509.ParseCertificate(der)
}

// readCertificate reads the first certificate in a PEM file. The error can be fs.ErrNotExist or
// errDamaged.
func readCertificate(path string) (*x509.Certificate, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil || block.Type != "CERTIFICATE" {
		return nil, fmt.Errorf("%w: no PEM certificate", errDamaged)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return cert, nil
}

// withoutPath returns the cause of a file system error, without the path.
func withoutPath(err error) error {
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
