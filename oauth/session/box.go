package session

import (
	"fmt"
	"time"

	"github.com/gorilla/securecookie"
)

// Box encrypts and signs cookie values. A value that was sealed under one name cannot be opened
// under another name.
type Box struct{ codecs []securecookie.Codec }

// NewBox returns a box that uses the given secrets. The first secret encrypts, and every secret can
// decrypt. Sealed values do not expire. If a value must expire, it must contain its expiration
// time.
func NewBox(secrets []Secret) (*Box, error) {
	codecs, err := newCodecs(0, secrets)
	if err != nil {
		return nil, err
	}
	return &Box{codecs}, nil
}

// Seal returns the encrypted and signed JSON of a value for the named cookie.
func (b *Box) Seal(name string, value any) (string, error) {
	text, err := securecookie.EncodeMulti(name, value, b.codecs...)
	if err != nil {
		return "", fmt.Errorf("encrypt cookie %q: %w", name, err)
	}
	return text, nil
}

// Open decrypts the value of the named cookie, and decodes it into the variable that into points
// to.
func (b *Box) Open(name, text string, into any) error {
	if err := securecookie.DecodeMulti(name, text, into, b.codecs...); err != nil {
		return fmt.Errorf("decrypt cookie %q: %w", name, err)
	}
	return nil
}

// newCodecs returns a codec for each secret. A maxAge of 0 means no limit.
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
