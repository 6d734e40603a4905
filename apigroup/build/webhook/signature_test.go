package webhook

import (
	"net/http"
	"testing"
)

// hello is the HMAC-SHA256 of "Hello, World!" with the key "It's a Secret to Everybody", which is
// the example in GitHub's documentation.
const (
	hello    = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	everyone = "It's a Secret to Everybody"
)

func TestVerified(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, header, payload string
		signed, verified      bool
	}{
		"github":                  {"github", "X-Hub-Signature-256", "sha256=" + hello, true, true},
		"github, other body":      {"github", "X-Hub-Signature-256", "sha256=" + hello[:62] + "00", true, false},
		"github, cut off":         {"github", "X-Hub-Signature-256", "sha256=" + hello[:62], true, false},
		"github, no digits":       {"github", "X-Hub-Signature-256", "sha256=secret", true, false},
		"github, SHA-1 alone":     {"github", "X-Hub-Signature", "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59", false, false},
		"github, nothing":         {"github", "X-Other", hello, false, false},
		"github, gitlab's":        {"github", "X-Gitlab-Token", everyone, false, false},
		"gogs":                    {"github", "X-Gogs-Signature", hello, true, true},
		"gitlab":                  {"gitlab", "X-Gitlab-Token", everyone, true, true},
		"gitlab, wrong":           {"gitlab", "X-Gitlab-Token", everyone + "!", true, false},
		"bitbucket":               {"bitbucket", "X-Hub-Signature", "sha256=" + hello, true, true},
		"bitbucket, wrong":        {"bitbucket", "X-Hub-Signature", "sha256=00", true, false},
		"bitbucket, other digest": {"bitbucket", "X-Hub-Signature", "sha1=" + hello, true, false},
		"generic has none":        {"generic", "X-Hub-Signature-256", "sha256=" + hello, false, false},
	} {
		header := http.Header{}
		header.Set(tt.header, tt.payload)
		call := Call{header, []byte("Hello, World!")}
		if signed := Signed(tt.kind, header); signed != tt.signed {
			t.Errorf("%s: signed %t, want %t", name, signed, tt.signed)
		}
		if verified := Verified(tt.kind, call, everyone); verified != tt.verified {
			t.Errorf("%s: verified %t, want %t", name, verified, tt.verified)
		}
		if Verified(tt.kind, call, "") {
			t.Errorf("%s: verified with an empty secret", name)
		}
	}
}
