package webhook

import (
	"net/http"
	"testing"
)

// hello is HMAC-SHA256 of "Hello, World!" with the key "It's a Secret to Everybody", the example that GitHub's documentation gives.
const (
	hello    = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
	everyone = "It's a Secret to Everybody"
)

func TestASenderProvesThatItKnowsTheSecret(t *testing.T) {
	for name, tt := range map[string]struct {
		kind, header, sent string
		signed, proven     bool
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
		header.Set(tt.header, tt.sent)
		call := Call{header, []byte("Hello, World!")}
		if signed := Signed(tt.kind, header); signed != tt.signed {
			t.Errorf("%s: signed %t, want %t", name, signed, tt.signed)
		}
		if proven := Proven(tt.kind, call, everyone); proven != tt.proven {
			t.Errorf("%s: proven %t, want %t", name, proven, tt.proven)
		}
		if Proven(tt.kind, call, "") {
			t.Errorf("%s: an empty secret is proven", name)
		}
	}
}
