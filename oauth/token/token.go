// Package token issues access tokens and authorization codes, exchanges codes for tokens, and
// authenticates the tokens of requests.
//
// A client gets a secret, `sha256~` and 43 characters. The API object has the name `sha256~` and
// the hash of the secret, so that readers of the objects, of a backup or of an audit log cannot use
// the token. An administrator can also create an OAuthAccessToken with any other name, as in
// OpenShift 3: then the name itself is the token.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// prefix is the prefix of secrets, and of object names that are hashes.
const prefix = "sha256~"

// secretBytes is the entropy of a secret: 256 bits cannot be guessed.
const secretBytes = 32

// encodedLength is the length of a secret in base64.
const encodedLength = 43

// New returns a secret and the name of its object.
func New() (secret, name string) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(random)
	return secret, hashed(secret)
}

// Name returns the name of a secret's object. ok is false for a text that cannot be a secret,
// without a lookup.
//
// The lookup by hash also prevents timing attacks: the duration does not depend on the correct part
// of a guess.
func Name(secret string) (name string, ok bool) {
	if encoded, ok := strings.CutPrefix(secret, prefix); ok {
		_, err := base64.RawURLEncoding.DecodeString(encoded)
		return hashed(secret), err == nil && len(encoded) == encodedLength
	}
	return secret, len(secret) >= MinLength && len(secret) <= maxLength && !strings.ContainsAny(secret, "/%~ ")
}

// MinLength is the minimum length of an object name that is itself the token. Shorter names could
// be guessed.
const MinLength = 32

// maxLength is the maximum length of an object's name.
const maxLength = 253

// IsHashed reports whether the name of a token object is a hash and not the token.
func IsHashed(name string) bool { return strings.HasPrefix(name, prefix) }

func hashed(secret string) string {
	hash := sha256.Sum256([]byte(strings.TrimPrefix(secret, prefix)))
	return prefix + base64.RawURLEncoding.EncodeToString(hash[:])
}
