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

// kind is the required type of the signed text.
const kind = "atomic container signature"

// maxClaims is the maximum size of a signed text in bytes.
const maxClaims = 1 << 20

// claims is the content of a signature and the key that signed it.
type claims struct {
	digest, identity, creator string
	at                        time.Time
	signer                    string // ID of the signing key, 16 hexadecimal digits
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

// open verifies that one of the keys signed content, and parses it. It fails if the key or the
// signature has expired, or if the message is encrypted.
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

// parse parses the signed text. It rejects unknown fields outside of optional, because they could
// change the meaning of the signature.
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

// check returns an error unless the signature is for this image and identity.
func (c *claims) check(image, identity string) error {
	if c.digest != image {
		return fmt.Errorf("the signature is for the image %q", c.digest)
	}
	if c.identity != identity {
		return fmt.Errorf("the signature is for the identity %q, expected is %q", c.identity, identity)
	}
	return nil
}
