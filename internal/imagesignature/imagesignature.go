// Package imagesignature opens image signatures, which are OpenPGP messages. The signed text is an
// "atomic container signature".
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 12.
package imagesignature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// kind is the required type of the signed text.
const kind = "atomic container signature"

// maxClaims is the maximum size of a signed text, in bytes.
const maxClaims = 1 << 20

// Claims is a signature's content, with the ID of the key that signed it.
type Claims struct {
	// Digest is the digest of the image's manifest, and Identity is the image's name, such as
	// registry.example.com/shop/app:v1.
	Digest, Identity string
	// Creator is the program that created the signature, and At is the creation time. Both are
	// optional.
	Creator string
	At      time.Time
	// Signer is the signing key's ID, in 16 hexadecimal digits.
	Signer string
}

// Keys reads public keys in binary or ASCII-armored form, as exported by gpg --export.
func Keys(content []byte) (openpgp.EntityList, error) {
	read := openpgp.ReadKeyRing
	if bytes.HasPrefix(bytes.TrimSpace(content), []byte("-----BEGIN")) {
		read = openpgp.ReadArmoredKeyRing
	}
	return read(bytes.NewReader(content))
}

// signedText is the signed JSON document.
type signedText struct {
	Critical struct {
		Type  string `json:"type"`
		Image struct {
			Digest string `json:"docker-manifest-digest"`
		} `json:"image"`
		Identity struct {
			Reference string `json:"docker-reference"`
		} `json:"identity"`
	} `json:"critical"`
	Optional map[string]any `json:"optional"`
}

// Open verifies that content was signed by one of the keys, and parses it. It returns an error if
// the key or the signature has expired, or if the message is encrypted.
func Open(content []byte, keys openpgp.EntityList) (*Claims, error) {
	message, err := openpgp.ReadMessage(bytes.NewReader(content), keys, nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read signature: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(message.UnverifiedBody, maxClaims+1))
	if err != nil {
		return nil, fmt.Errorf("read signature: %w", err)
	}
	switch {
	case len(text) > maxClaims:
		return nil, fmt.Errorf("read signature: larger than %d bytes", maxClaims)
	case message.IsEncrypted || !message.IsSigned:
		return nil, errors.New("not a signed message")
	case message.SignedBy == nil:
		return nil, fmt.Errorf("signed by the unknown key %016X; add its public key", message.SignedByKeyId)
	case message.SignatureError != nil:
		return nil, fmt.Errorf("verify signature: %w", message.SignatureError)
	case message.Signature == nil:
		return nil, errors.New("the message ends before its signature")
	}
	read, err := parse(text)
	if err != nil {
		return nil, err
	}
	read.Signer = fmt.Sprintf("%016X", message.SignedBy.Entity.PrimaryKey.KeyId)
	return read, nil
}

// parse parses the signed text. It returns an error for unknown fields outside the "optional"
// object, because they could change the signature's meaning.
func parse(text []byte) (*Claims, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var doc signedText
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("parse signed text: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("parse signed text: more than one document")
	}
	critical := doc.Critical
	if critical.Type != kind {
		return nil, fmt.Errorf("parse signed text: type %q must be %q", critical.Type, kind)
	}
	if critical.Image.Digest == "" || critical.Identity.Reference == "" {
		return nil, errors.New("parse signed text: it contains no image or no identity")
	}
	read := &Claims{Digest: critical.Image.Digest, Identity: critical.Identity.Reference}
	read.Creator, _ = doc.Optional["creator"].(string)
	if seconds, ok := doc.Optional["timestamp"].(float64); ok {
		read.At = time.Unix(int64(seconds), 0)
	}
	return read, nil
}
