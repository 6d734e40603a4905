package join

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Prefix is the prefix of each token. It distinguishes join tokens from other bearer tokens.
const Prefix = "sw1."

// idAlphabet has 32 characters, so each byte of a random ID selects a character without bias.
const idAlphabet = "abcdefghijklmnopqrstuvwxyz234567"

// idLength is the length of a token ID, which is the same as upstream's.
const idLength = 6

// secretBytes is the length of a secret, in bytes. A secret of this length cannot be guessed, so a
// fast hash is sufficient to protect it.
const secretBytes = 20

// Token allows a host to join a cluster. Its text is `sw1.<authority>.<ID>.<secret>`.
type Token struct {
	// Authority is the hexadecimal SHA-256 hash of the public key in the cluster's CA certificate.
	// A host verifies the hash before it sends the secret.
	Authority string
	// ID is the token's public name.
	ID string
	// Secret proves that the host has the token. The cluster stores only the secret's hash.
	Secret string
}

// New returns a new token for the cluster with the given PEM-encoded CA certificate.
func New(authority []byte) (Token, error) {
	hash, err := HashAuthority(authority)
	if err != nil {
		return Token{}, err
	}
	random := make([]byte, idLength+secretBytes)
	_, _ = rand.Read(random) // never fails
	id := make([]byte, idLength)
	for i := range id {
		id[i] = idAlphabet[random[i]%32]
	}
	return Token{Authority: hash, ID: string(id), Secret: hex.EncodeToString(random[idLength:])}, nil
}

// String returns the token's text, including its secret.
func (t Token) String() string {
	return Prefix + strings.Join([]string{t.Authority, t.ID, t.Secret}, ".")
}

var format = regexp.MustCompile(`^sw1\.([0-9a-f]{64})\.([a-z2-7]{6})\.([0-9a-f]{40})$`)

// ErrFormat is the error for text that is not a token.
var ErrFormat = errors.New("it is not a complete token; copy the output of `slipway token create`")

// Reasons for which a master rejects a token. The joining host prints them for its administrator.
var (
	ErrUnknown = errors.New("the token does not exist: it was revoked, or it expired long ago; create another one with `slipway token create` on a master")
	ErrExpired = errors.New("the token has expired; create another one with `slipway token create` on a master")
	ErrUsedUp  = errors.New("the token is used up: a host has joined with it, or is joining; create another one with `slipway token create` on a master")
)

// Parse parses a token's text. The error never contains the text.
func Parse(text string) (Token, error) {
	parts := format.FindStringSubmatch(strings.TrimSpace(text))
	if parts == nil {
		return Token{}, ErrFormat
	}
	return Token{Authority: parts[1], ID: parts[2], Secret: parts[3]}, nil
}

// SecretHash returns the hash of the secret that the cluster stores.
func (t Token) SecretHash() string {
	sum := sha256.Sum256([]byte(t.ID + "." + t.Secret))
	return hex.EncodeToString(sum[:])
}

// Matches reports whether hash is the hash of the token's secret.
func (t Token) Matches(hash []byte) bool {
	return subtle.ConstantTimeCompare([]byte(t.SecretHash()), hash) == 1
}

// Trusted returns the CA certificate in data, as PEM, if the token pins the certificate. It returns
// only this certificate: an attacker could have appended other certificates to data, and a reader
// of the result would trust all of them.
func (t Token) Trusted(data []byte) (authority []byte, ok bool) {
	cert, err := parseAuthority(data)
	if err != nil || hashKey(cert) != t.Authority {
		return nil, false
	}
	return pem.EncodeToMemory(&pem.Block{Type: certificateType, Bytes: cert.Raw}), true
}

// HashAuthority returns the SHA-256 hash of the public key in a PEM-encoded certificate.
func HashAuthority(authority []byte) (string, error) {
	cert, err := parseAuthority(authority)
	if err != nil {
		return "", err
	}
	return hashKey(cert), nil
}

func hashKey(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.RawSubjectPublicKeyInfo)
	return hex.EncodeToString(sum[:])
}

// certificateType is the PEM block type of certificates.
const certificateType = "CERTIFICATE"

// parseAuthority returns the first certificate in PEM data.
func parseAuthority(data []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(data)
	if block == nil || block.Type != certificateType {
		return nil, errors.New("read certificate authority: it is not a PEM certificate")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("read certificate authority: %w", err)
	}
	return cert, nil
}
