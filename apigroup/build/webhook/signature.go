package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"net/http"
	"strings"
)

// The headers by which hosts prove that they know the secret of a hook without naming it in the address. Source: GitHub, validating webhook deliveries;
// Gogs, webhooks; GitLab, webhooks, secret token; Bitbucket, secure webhooks.
const (
	githubSignature    = "X-Hub-Signature-256"
	gogsSignature      = "X-Gogs-Signature"
	gitlabToken        = "X-Gitlab-Token"
	bitbucketSignature = "X-Hub-Signature"
)

// Signed tells whether a call of a kind carries a proof that its sender knows the secret, right or wrong. Generic hooks have none.
func Signed(kind string, header http.Header) bool { return proof(kind, header) != "" }

// Proven tells whether the proof of a call is that of a secret: the call's own signature, or the secret itself with GitLab.
func Proven(kind string, call Call, secret string) bool {
	sent := proof(kind, call.Header)
	if sent == "" || secret == "" {
		return false
	}
	if kind == "gitlab" {
		return Same(sent, secret)
	}
	signature, err := hex.DecodeString(sent)
	if err != nil {
		return false
	}
	sum := hmac.New(sha256.New, []byte(secret))
	sum.Write(call.Body) // does not fail
	return hmac.Equal(signature, sum.Sum(nil))
}

// proof is what a call shows: the signature in hexadecimal digits, or GitLab's token; empty for nothing that counts. SHA-1, which GitHub
// sends too for old receivers, does not.
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

// Same compares secrets in a time that says nothing about them, nor about their lengths.
func Same(a, b string) bool {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:]) == 1
}
