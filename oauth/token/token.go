// Package token makes access tokens and authorization codes, exchanges codes for tokens and recognizes the tokens that come with
// requests.
//
// What a client gets is a secret, `sha256~` and 43 characters; the API object has the name `sha256~` and the secret's hash. Who
// reads the objects, a backup or an audit log cannot use them. An administrator may also create an OAuthAccessToken of any other name, as in
// OpenShift 3: then the name itself is the token.
package token

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// prefix begins secrets, and names of objects, whose name is a hash.
const prefix = "sha256~"

// secretBytes is the entropy of a secret: 256 bits cannot be guessed.
const secretBytes = 32

// encodedLength is that many bytes in base64.
const encodedLength = 43

// New makes a secret and the name of the object that stands for it.
func New() (secret, name string) {
	random := make([]byte, secretBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	secret = prefix + base64.RawURLEncoding.EncodeToString(random)
	return secret, hashed(secret)
}

// Name gives the name of the object for which a secret stands. A text that can stand for none gives ok false, before anything is looked up.
//
// That a secret is looked up by its hash also keeps the time of the answer from telling how much of a guess was right.
func Name(secret string) (name string, ok bool) {
	if encoded, made := strings.CutPrefix(secret, prefix); made {
		_, err := base64.RawURLEncoding.DecodeString(encoded)
		return hashed(secret), err == nil && len(encoded) == encodedLength
	}
	return secret, len(secret) >= MinLength && len(secret) <= maxLength && !strings.ContainsAny(secret, "/%~ ")
}

// MinLength is the shortest name of a token object that is itself the token: fewer characters could be guessed.
const MinLength = 32

// maxLength is the longest name of an object.
const maxLength = 253

// IsHashed tells whether a token object's name is a hash, and not the token.
func IsHashed(name string) bool { return strings.HasPrefix(name, prefix) }

func hashed(secret string) string {
	hash := sha256.Sum256([]byte(strings.TrimPrefix(secret, prefix)))
	return prefix + base64.RawURLEncoding.EncodeToString(hash[:])
}
