package proxy

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// sealer encrypts and authenticates cookie values. All replicas of an application have the same
// client and secret, so each replica can open the other replicas' cookies. It cannot open the
// cookies of another client, even if both clients have the same secret.
type sealer struct{ aead cipher.AEAD }

// keySize is the length of an AES-256 key, in bytes.
const keySize = 32

func newSealer(client, secret string) (sealer, error) {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "slipway-oauth-proxy "+client, keySize)
	if err != nil {
		return sealer{}, fmt.Errorf("derive key: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return sealer{}, fmt.Errorf("create cipher: %w", err)
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return sealer{aead}, err
}

// sealed is the content of a cookie.
type sealed struct {
	Expires time.Time
	Value   json.RawMessage
}

// set sets a cookie that only open can read, until the cookie expires.
func (s sealer) set(w http.ResponseWriter, name string, value any, valid time.Duration) error {
	content, err := json.Marshal(value)
	if err == nil {
		content, err = json.Marshal(sealed{time.Now().Add(valid), content})
	}
	if err != nil {
		return fmt.Errorf("encode cookie %q: %w", name, err)
	}
	text := base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, content, []byte(name)))
	http.SetCookie(w, cookie(name, text, int(valid.Seconds())))
	return nil
}

// open opens a cookie that set wrote. ok is false if the request has no valid cookie.
func (s sealer) open(r *http.Request, name string, value any) (ok bool) {
	sent, err := r.Cookie(name)
	if err != nil {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(sent.Value)
	if err != nil {
		return false
	}
	var content sealed
	plain, err := s.aead.Open(nil, nil, text, []byte(name))
	if err == nil {
		err = json.Unmarshal(plain, &content)
	}
	if err == nil && !time.Now().Before(content.Expires) {
		err = errors.New("the cookie has expired")
	}
	return err == nil && json.Unmarshal(content.Value, value) == nil
}

// clearCookie removes a cookie.
func clearCookie(w http.ResponseWriter, name string) { http.SetCookie(w, cookie(name, "", -1)) }

// cookie returns a cookie that browsers send only over TLS. Browsers also send the cookie with
// requests that another site initiates, because the OAuth server, which redirects to the proxy, is
// another site.
func cookie(name, value string, seconds int) *http.Cookie {
	return &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: seconds, Secure: true, HttpOnly: true, SameSite: http.SameSiteLaxMode}
}
