package pki

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// checkServiceAccounts returns an error if the private key that signed existing tokens is missing
// or damaged, because a new key would invalidate the tokens. If the public key exists, the private
// key must have existed too.
func (i *issuer) checkServiceAccounts() error {
	_, err := readKey(i.credentials.ServiceAccountKey)
	if err == nil {
		return nil
	}
	_, publicErr := os.Lstat(i.credentials.ServiceAccountPublicKey)
	if errors.Is(err, fs.ErrNotExist) && publicErr != nil {
		return nil // this is the host's first start
	}
	return fmt.Errorf("read signing key of service accounts %q: %w; restore it from a backup, or remove %q and %q to create new keys (every service account token in use then becomes invalid)",
		i.credentials.ServiceAccountKey, withoutPath(err), i.credentials.ServiceAccountKey, i.credentials.ServiceAccountPublicKey)
}

// ensureServiceAccounts writes the signing key's public key.
func (i *issuer) ensureServiceAccounts() error {
	der, err := x509.MarshalPKIXPublicKey(i.keys[i.credentials.ServiceAccountKey].Public())
	if err != nil {
		return fmt.Errorf("encode service account public key: %w", err)
	}
	changed, err := writeIfDifferent(i.credentials.ServiceAccountPublicKey, encodePEM("PUBLIC KEY", der), public)
	if changed && err == nil {
		i.record(i.credentials.ServiceAccountPublicKey)
	}
	return err
}
