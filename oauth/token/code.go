package token

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"
)

// A code has the same format as a token secret. Its first half is random, and its second half is
// the signature of the first half.

// halfBytes is the length of each half, in bytes. An attacker cannot guess 128 random bits.
const halfBytes = secretBytes / 2

// newCode returns a code and the name for its object.
func newCode(key []byte) (code, name string) {
	random := make([]byte, halfBytes, secretBytes)
	_, _ = rand.Read(random) // never fails: the runtime ends the process instead
	code = prefix + base64.RawURLEncoding.EncodeToString(append(random, sign(random, key)...))
	return code, hashed(code)
}

// codeName returns the name of a code's object. ok is false if none of the keys verifies the code.
func codeName(code string, keys [][]byte) (name string, ok bool) {
	encoded, ok := strings.CutPrefix(code, prefix)
	content, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || len(content) != secretBytes || len(encoded) != encodedLength {
		return "", false
	}
	for _, key := range keys {
		if hmac.Equal(content[halfBytes:], sign(content[:halfBytes], key)) {
			return hashed(code), true
		}
	}
	return "", false
}

func sign(random, key []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("OAuth code\n"))
	mac.Write(random)
	return mac.Sum(nil)[:halfBytes]
}
