package signature

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// kind is the type in the signed text.
const kind = "atomic container signature"

// maxClaims is the maximum size of the signed text, in bytes.
const maxClaims = 1 << 20

// claims is the content of a signature, and its signer.
type claims struct {
	digest, identity, creator string
	at                        time.Time
	signer                    string // ID of the key, 16 hexadecimal digits
}

// signedText is the JSON of a signature.
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

// open verifies that one of the keys made a signature, and parses the signature. It fails if the
// key or the signature has expired, or if the signature is encrypted.
func open(content []byte, keys openpgp.EntityList) (*claims, error) {
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
		return nil, fmt.Errorf("signed by the unknown key %016X: set its public key with --public-key", message.SignedByKeyId)
	case message.SignatureError != nil:
		return nil, fmt.Errorf("verify signature: %w", message.SignatureError)
	case message.Signature == nil:
		return nil, errors.New("the message ends before its signature")
	}
	read, err := parse(text)
	if err != nil {
		return nil, err
	}
	read.signer = fmt.Sprintf("%016X", message.SignedBy.Entity.PrimaryKey.KeyId)
	return read, nil
}

// parse parses the text of a signature. It rejects unknown fields, because they can change the
// meaning, except optional ones.
func parse(text []byte) (*claims, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	var doc signedText
	if err := decoder.Decode(&doc); err != nil {
		return nil, fmt.Errorf("read signed text: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read signed text: more than one document")
	}
	critical := doc.Critical
	if critical.Type != kind {
		return nil, fmt.Errorf("read signed text: type %q must be %q", critical.Type, kind)
	}
	if critical.Image.Digest == "" || critical.Identity.Reference == "" {
		return nil, errors.New("read signed text: it contains no image or no identity")
	}
	read := &claims{digest: critical.Image.Digest, identity: critical.Identity.Reference}
	read.creator, _ = doc.Optional["creator"].(string)
	if seconds, ok := doc.Optional["timestamp"].(float64); ok {
		read.at = time.Unix(int64(seconds), 0)
	}
	return read, nil
}

// check compares the claims with the expected image and identity.
func (c *claims) check(image, identity string) error {
	if c.digest != image {
		return fmt.Errorf("the signature is for the image %q", c.digest)
	}
	if c.identity != identity {
		return fmt.Errorf("the signature is for the identity %q, expected is %q", c.identity, identity)
	}
	return nil
}
