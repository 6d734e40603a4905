// Package token issues access tokens and authorization codes, exchanges codes for tokens, and
// authenticates the tokens in requests.
//
// A client receives a secret, which is `sha256~` followed by 43 characters. The API object's name
// is `sha256~` followed by the hash of the secret, so that readers of the objects, of a backup or
// of an audit log cannot use the token. As in OpenShift 3, an administrator can also create an
// OAuthAccessToken with any other name. In this case, the name itself is the token.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// prefix is the prefix of secrets and of object names that are hashes.
const prefix = "sha256~"

// secretBytes is the length of a secret, in bytes. 256 random bits cannot be guessed.
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

// Name returns the object name for a secret. If the text cannot be a secret, ok is false and no
// lookup is needed.
//
// Looking up the object by its hash also prevents timing attacks: the duration does not depend on
// how much of a guess is correct.
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

// maxLength is the maximum length of an object name.
const maxLength = 253

// IsHashed reports whether a token object's name is a hash and not the token itself.
func IsHashed(name string) bool { return strings.HasPrefix(name, prefix) }

func hashed(secret string) string {
	hash := sha256.Sum256([]byte(strings.TrimPrefix(secret, prefix)))
	return prefix + base64.RawURLEncoding.EncodeToString(hash[:])
}
