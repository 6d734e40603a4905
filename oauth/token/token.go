// Package token issues access tokens and authorization codes, exchanges codes for tokens, and
// authenticates the tokens in requests.
//
// A client receives a secret, which is `sha256~` followed by 43 characters. The name of the token's
// API object is `sha256~` followed by the hash of the secret. Therefore, users who can read the
// objects, a backup or an audit log cannot use the token. As in OpenShift 3, an administrator can
// also create an OAuthAccessToken with any other name. In this case, the name itself is the token.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// prefix is the prefix of secrets and of object names that are hashes.
const prefix = "sha256~"

// secretBytes is the length of a secret, in bytes. An attacker cannot guess 256 random bits.
const secretBytes = 32

// encodedLength is the length of a base64-encoded secret, in characters.
const encodedLength = 43

// New returns a secret and the name for its object.
func New() (secret, name string) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(random)
	return secret, hashed(secret)
}

// Name returns the name of the object for a secret. If the text cannot be a secret, ok is false,
// and the caller does not need to look up the object.
//
// The lookup by hash also prevents timing attacks, because its duration does not depend on the
// number of correct characters in a guessed secret.
func Name(secret string) (name string, ok bool) {
	if encoded, ok := strings.CutPrefix(secret, prefix); ok {
		_, err := base64.RawURLEncoding.DecodeString(encoded)
		return hashed(secret), err == nil && len(encoded) == encodedLength
	}
	return secret, len(secret) >= MinLength && len(secret) <= maxLength && !strings.ContainsAny(secret, "/%~ ")
}

// MinLength is the minimum length of an object name that is itself the token. An attacker could
// guess a shorter name.
const MinLength = 32

// maxLength is the maximum length of an object name.
const maxLength = 253

// IsHashed reports whether a token object's name is a hash and not the token itself.
func IsHashed(name string) bool { return strings.HasPrefix(name, prefix) }

func hashed(secret string) string {
	hash := sha256.Sum256([]byte(strings.TrimPrefix(secret, prefix)))
	return prefix + base64.RawURLEncoding.EncodeToString(hash[:])
}
