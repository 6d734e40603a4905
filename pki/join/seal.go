package join

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// sealPurpose is an input of the key derivation, so that the keys of sealed messages differ from
// other keys that are derived from a token.
const sealPurpose = "slipway join as master 1"

// errSealed is the error for a message that was not sealed for this host and token.
var errSealed = errors.New("the master's response is not for this host and token: it was changed in transit")

// NewSealKey returns a private key for a single join. Its public key is sent as Request.Key.
func NewSealKey() (*ecdh.PrivateKey, error) {
	key, err := ecdh.X25519().GenerateKey(rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("generate key for the join: %w", err)
	}
	return key, nil
}

// Seal encrypts a message for a host that has both the token and the private key for the given
// public key. Neither the token alone nor a recorded connection is sufficient to decrypt the
// message.
func (t Token) Seal(public, message []byte) ([]byte, error) {
	receiver, err := ecdh.X25519().NewPublicKey(public)
	if err != nil {
		return nil, errors.New("the request contains no valid key; use the same version of slipway on all hosts")
	}
	own, err := NewSealKey()
	if err != nil {
		return nil, err
	}
	box, err := t.box(own, receiver, own.PublicKey(), receiver)
	if err != nil {
		return nil, err
	}
	// Each message has its own key, so a constant nonce is safe.
	return box.Seal(own.PublicKey().Bytes(), make([]byte, box.NonceSize()), message, nil), nil
}

// Open decrypts a message that Seal encrypted.
func (t Token) Open(key *ecdh.PrivateKey, sealed []byte) ([]byte, error) {
	length := len(key.PublicKey().Bytes())
	if len(sealed) < length {
		return nil, errSealed
	}
	sender, err := ecdh.X25519().NewPublicKey(sealed[:length])
	if err != nil {
		return nil, errSealed
	}
	box, err := t.box(key, sender, sender, key.PublicKey())
	if err != nil {
		return nil, errSealed
	}
	message, err := box.Open(nil, make([]byte, box.NonceSize()), sealed[length:], nil)
	if err != nil {
		return nil, errSealed
	}
	return message, nil
}

// box returns the cipher for a message. Its key depends on the token and on both key pairs.
func (t Token) box(own *ecdh.PrivateKey, other, sender, receiver *ecdh.PublicKey) (cipher.AEAD, error) {
	secret, err := own.ECDH(other)
	if err != nil {
		return nil, fmt.Errorf("compute shared key for the join: %w", err)
	}
	secret = append(secret, t.String()...)
	salt := append(sender.Bytes(), receiver.Bytes()...)
	key, err := hkdf.Key(sha256.New, secret, salt, sealPurpose, 32)
	if err != nil {
		return nil, fmt.Errorf("derive key for the join: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("create cipher for the join: %w", err)
	}
	return cipher.NewGCM(block)
}
