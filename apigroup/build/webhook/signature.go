package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// Headers that prove that the caller knows the secret, so the URL does not have to contain it.
// Source: GitHub, validating webhook deliveries; Gogs, webhooks; GitLab, webhooks, secret token;
// Bitbucket, secure webhooks.
const (
	githubSignature    = "X-Hub-Signature-256"
	gogsSignature      = "X-Gogs-Signature"
	gitlabToken        = "X-Gitlab-Token"
	bitbucketSignature = "X-Hub-Signature"
)

// Signed reports whether a call contains a proof, valid or not, that the caller knows the secret.
// Generic calls never contain a proof.
func Signed(kind string, header http.Header) bool { return proof(kind, header) != "" }

// Verified reports whether a call's proof is valid. The proof is a signature of the body or, for
// GitLab, the secret itself.
func Verified(kind string, call Call, secret string) bool {
	request := proof(kind, call.Header)
	if request == "" || secret == "" {
		return false
	}
	if kind == "gitlab" {
		return Same(request, secret)
	}
	signature, err := hex.DecodeString(request)
	if err != nil {
		return false
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write(call.Body) // never fails
	return hmac.Equal(signature, sum.Sum(nil))
}

// proof returns the hexadecimal signature or GitLab's token, or "" if the call contains neither. It
// ignores SHA-1 signatures, which GitHub also sends for compatibility.
func proof(kind string, header http.Header) string {
	const algorithm = "sha256="
	switch kind {
	case "github":
		if signature, ok := strings.CutPrefix(header.Get(githubSignature), algorithm); ok {
			return signature
		}
		return header.Get(gogsSignature)
	case "gitlab":
		return header.Get(gitlabToken)
	case "bitbucket":
		signature, _ := strings.CutPrefix(header.Get(bitbucketSignature), algorithm)
		return signature
	}
	return ""
}

// Same compares secrets in constant time: the duration depends neither on their content nor on
// their length.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
