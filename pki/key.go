package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// tokenKeyBits is the size, in bits, of the RSA key that signs service account tokens.
const tokenKeyBits = 2048

// errDamaged is the error for a file whose content is invalid.
var errDamaged = errors.New("damaged")

// readKey reads a private key in any of the common PEM formats. The error can be fs.ErrNotExist or
// errDamaged.
func readKey(path string) (crypto.Signer, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return nil, fmt.Errorf("%w: no PEM block", errDamaged)
	}
	if key, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	if key, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return key, nil
	}
	key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: no private key", errDamaged)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: the key cannot sign", errDamaged)
	}
	return signer, nil
}

// loadKeys reads the private keys of all credentials and generates missing keys.
func (i *issuer) loadKeys() error {
	var missing []keyFile
	for _, file := range i.keyFiles() {
		key, err := readKey(file.path)
		if err == nil && !(file.leaf && i.spec.ReplaceKeys) {
			i.keys[file.path] = key
			if err := tighten(file.path); err != nil {
				return err
			}
			continue
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
			return fmt.Errorf("read private key: %w", err)
		}
		missing = append(missing, file)
	}
	keys, err := generateKeys(missing)
	if err != nil {
		return err
	}
	for n, file := range missing {
		i.keys[file.path] = keys[n].signer
		if file.leaf {
			i.unwritten[file.path] = keys[n].encoded // sign writes the key together with its certificate
			continue
		}
		if err := writeKey(file, keys[n].encoded); err != nil {
			return err
		}
	}
	return nil
}

// keyFile describes the file of a private key. cert is the path of the certificate or public key
// that belongs to the private key.
type keyFile struct {
	path, cert string
	// signsTokens means that the key signs service account tokens. It is an RSA key: tokens are
	// signed with RS256, so that other programs can verify them too.
	signsTokens bool
	// leaf means that one of the host's authorities signs the certificate.
	leaf bool
}

func (i *issuer) keyFiles() []keyFile {
	files := []keyFile{{path: i.credentials.ServiceAccountKey, cert: i.credentials.ServiceAccountPublicKey, signsTokens: true}}
	for _, a := range i.authoritySpecs() {
		files = append(files, keyFile{path: a.files.Key, cert: a.files.Cert})
	}
	for _, l := range i.leaves() {
		files = append(files, keyFile{path: l.files.Key, cert: l.files.Cert, leaf: true})
	}
	return files
}

// newKey is a key that has not been written to its file yet, with its PEM encoding.
type newKey struct {
	signer  crypto.Signer
	encoded []byte
}

// generateKeys generates a key for each file, with one worker per CPU. The keys are in the order of
// files.
func generateKeys(files []keyFile) ([]newKey, error) {
	keys, errs := make([]newKey, len(files)), make([]error, len(files))
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(len(files), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for n := range next {
				signer, encoded, err := generateKey(files[n].signsTokens)
				if err != nil {
					errs[n] = fmt.Errorf("generate private key %q: %w", files[n].path, err)
				}
				keys[n] = newKey{signer, encoded}
			}
		})
	}
	for n := range files {
		next <- n
	}
	close(next)
	workers.Wait()
	return keys, errors.Join(errs...)
}

// writeKey writes a new authority or service account key. It first removes the certificate for the
// previous key, so that a certificate and its key always match.
func writeKey(file keyFile, encoded []byte) error {
	if err := removeFile(file.cert); err != nil {
		return err
	}
	return atomicfile.Write(file.path, encoded, secret)
}

// generateKey generates an RSA key for tokens, or a P-256 key for certificates. It also returns the
// key as PEM. P-256 is used for certificates because it is faster. Generating an RSA key takes 100
// ms, a host has over 20 keys, and every TLS handshake with an RSA key takes longer.
func generateKey(signsTokens bool) (crypto.Signer, []byte, error) {
	if signsTokens {
		key, err := rsa.GenerateKey(rand.Reader, tokenKeyBits)
		if err != nil {
			return nil, nil, err
		}
		return key, encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	return key, encodePEM("EC PRIVATE KEY", der), err
}

// tighten removes other users' access to a private key file.
func tighten(path string) error {
	info, err := os.Stat(path)
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = os.Chmod(path, secret)
	}
	if err != nil {
		return fmt.Errorf("protect private key: %w", err)
	}
	return nil
}

// samePublicKey reports whether two public keys are equal.
func samePublicKey(a, b crypto.PublicKey) bool {
	key, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && key.Equal(b)
}
