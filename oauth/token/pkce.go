package token

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"regexp"

	"github.com/slipway-platform/slipway/oauth/client"
)

// Code challenge methods (RFC 7636, section 4.2).
const (
	Plain = "plain"
	S256  = "S256"
)

// ChallengeMethods returns the methods that every client can use. The metadata document lists them.
func ChallengeMethods() []string { return []string{S256} }

// codeText matches code challenges and code verifiers (RFC 7636, sections 4.1 and 4.2).
var codeText = regexp.MustCompile(`^[A-Za-z0-9._~-]{43,128}$`)

// CheckChallenge rejects an invalid code challenge and returns the challenge method. The default
// method is plain. Without a challenge, the method is empty.
func CheckChallenge(challenge, method string) (string, error) {
	switch {
	case challenge == "" && method == "":
		return "", nil
	case challenge == "":
		return "", fmt.Errorf("code_challenge is missing, but code_challenge_method is %q", method)
	case !codeText.MatchString(challenge):
		return "", fmt.Errorf("code_challenge must be 43 to 128 letters, digits or -._~")
	}
	switch method {
	case "", Plain:
		return Plain, nil
	case S256:
		return S256, nil
	}
	return "", fmt.Errorf("code_challenge_method %q is unknown; it must be S256 or plain", method)
}

// CheckMethod rejects a challenge method that does not protect a public client's code. A public
// client has no secret, so only the challenge prevents a thief from exchanging a stolen code. With
// the plain method, the challenge in the request URL is itself the verifier. method must be a
// method that CheckChallenge returned.
func CheckMethod(c *client.Client, method string) error {
	if method == S256 || !c.Public() || c.OptionalChallenge {
		return nil
	}
	return errors.New("a client without a secret must send a code_challenge with code_challenge_method S256, or use response_type token")
}

// Verifies reports whether a code verifier matches the challenge that was sent in the code request.
// If there was no challenge, only an empty verifier matches.
func Verifies(challenge, method, verifier string) bool {
	if challenge == "" {
		return verifier == ""
	}
	if !codeText.MatchString(verifier) {
		return false
	}
	computed := verifier
	if method == S256 {
		hash := sha256.Sum256([]byte(verifier))
		computed = base64.RawURLEncoding.EncodeToString(hash[:])
	}
	return subtle.ConstantTimeCompare([]byte(computed), []byte(challenge)) == 1
}
