package session

import (
	"fmt"
	"time"

	"github.com/gorilla/securecookie"
)

// Box encrypts and signs values for cookies. A value that was sealed under one name cannot be
// opened under another one.
type Box struct{ codecs []securecookie.Codec }

// NewBox returns a box with secrets. The first secret encrypts, all decrypt. Values do not expire:
// a value that must expire contains its time.
func NewBox(secrets []Secret) (*Box, error) {
	codecs, err := newCodecs(0, secrets)
	if err != nil {
		return nil, err
	}
	return &Box{codecs}, nil
}

// Seal returns a value, encoded as JSON, for the cookie of a name.
func (b *Box) Seal(name string, value any) (string, error) {
	text, err := securecookie.EncodeMulti(name, value, b.codecs...)
	if err != nil {
		return "", fmt.Errorf("encrypt cookie %q: %w", name, err)
	}
	return text, nil
}

// Open reads the value of the cookie of a name.
func (b *Box) Open(name, text string, into any) error {
	if err := securecookie.DecodeMulti(name, text, into, b.codecs...); err != nil {
		return fmt.Errorf("decrypt cookie %q: %w", name, err)
	}
	return nil
}

// newCodecs returns a codec for each secret. A maxAge of 0 is without limit.
func newCodecs(maxAge time.Duration, secrets []Secret) (codecs []securecookie.Codec, err error) {
	if len(secrets) == 0 {
		return nil, fmt.Errorf("create sessions: no secret is configured")
	}
	for i, secret := range secrets {
		if err := secret.validate(); err != nil {
			return nil, fmt.Errorf("use session secret %d: %w", i, err)
		}
		codec := securecookie.New([]byte(secret.Authentication), []byte(secret.Encryption))
		codec.MaxAge(int(maxAge.Seconds()))
		codec.SetSerializer(securecookie.JSONEncoder{})
		codecs = append(codecs, codec)
	}
	return codecs, nil
}
