package pki

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
)

// sealPurpose is an input of the key derivation, so that Seal's key differs from other keys that
// are derived from the authority's key.
const sealPurpose = "slipway files of masters 1"

// Seal encrypts a file that masters exchange through the cluster. The encryption key is derived
// from the private key of the cluster's authority in dir. That private key is stored only on
// masters' disks. Therefore, neither a copy of etcd nor etcd's encryption keys reveal the file.
func Seal(dir string, content []byte) ([]byte, error) {
	box, err := sealBox(dir)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, box.NonceSize())
	rand.Read(nonce)
	return box.Seal(nonce, nonce, content, nil), nil
}

// Open decrypts a file that Seal has encrypted on another master.
func Open(dir string, sealed []byte) ([]byte, error) {
	box, err := sealBox(dir)
	if err != nil {
		return nil, err
	}
	if len(sealed) < box.NonceSize() {
		return nil, errSealed
	}
	content, err := box.Open(nil, sealed[:box.NonceSize()], sealed[box.NonceSize():], nil)
	if err != nil {
		return nil, errSealed
	}
	return content, nil
}

// errSealed is the error for a file that was not sealed by one of the cluster's masters.
var errSealed = errors.New("it was changed, or encrypted by a cluster with another certificate authority")

func sealBox(dir string) (cipher.AEAD, error) {
	secret, err := os.ReadFile(FilesIn(dir).CA.Key)
	if err != nil {
		return nil, fmt.Errorf("read CA key: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, sealPurpose, 32)
	if err != nil {
		return nil, fmt.Errorf("derive shared file key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("derive shared file key: %w", err)
	}
	return cipher.NewGCM(block)
}
