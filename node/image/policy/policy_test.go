package policy

import (
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/distribution/reference"
)

const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// signer returns a public key, and a function that signs an identity and a digest.
func signer(t *testing.T) (key []byte, sign func(digest, identity string) []byte) {
	t.Helper()
	entity, err := openpgp.NewEntity("signer", "", "signer@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public strings.Builder
	if err := entity.Serialize(&public); err != nil {
		t.Fatal(err)
	}
	return []byte(public.String()), func(digest, identity string) []byte {
		t.Helper()
		var message strings.Builder
		writer, err := openpgp.Sign(&message, entity, nil, nil)
		if err == nil {
			_, err = fmt.Fprintf(writer, `{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}}, "optional": null}`, digest, identity)
		}
		if err := errors.Join(err, writer.Close()); err != nil {
			t.Fatal(err)
		}
		return []byte(message.String())
	}
}

// read returns the policy that text contains.
func read(t *testing.T, text string) (*Policy, error) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "policy.json")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(name)
}

func TestMostSpecificScopeApplies(t *testing.T) {
	const accept, reject = `[{"type": "insecureAcceptAnything"}]`, `[{"type": "reject"}]`
	policy, err := read(t, `{"default": `+reject+`, "transports": {"atomic": {"": `+accept+`}, "docker": {
		"registry.example.com": `+accept+`, "registry.example.com/team": `+reject+`, "registry.example.com/team/app": `+accept+`,
		"registry.example.com/team/app:bad": `+reject+`, "*.example.org": `+accept+`}}}`)
	if err != nil {
		t.Fatal(err)
	}
	for image, want := range map[string]bool{
		"registry.example.com/any":                true,
		"registry.example.com/team/other":         false,
		"registry.example.com/team/app:v1":        true,
		"registry.example.com/team/app:bad":       false,
		"registry.example.com/teams":              true,
		"registry.example.com:5000/any":           false,
		"a.b.example.org:5000/any":                true,
		"example.org/any":                         false,
		"busybox":                                 false,
		"registry.example.com/team/app@" + digest: true,
	} {
		name, err := reference.ParseDockerRef(image)
		if err != nil {
			t.Fatal(err)
		}
		if err := policy.Allow(name, digest, nil); (err == nil) != want {
			t.Errorf("%s: %v, want allowed %t", image, err, want)
		}
	}
}

func TestSignaturesAreVerified(t *testing.T) {
	key, sign := signer(t)
	_, forge := signer(t)
	good := sign(digest, "registry.example.com/team/app:v1")
	for name, tt := range map[string]struct {
		image, identity string
		signatures      [][]byte
		problem         string
	}{
		"valid":             {"registry.example.com/team/app:v1", "", [][]byte{good}, ""},
		"one of several":    {"registry.example.com/team/app:v1", "", [][]byte{[]byte("nonsense"), good}, ""},
		"by digest":         {"registry.example.com/team/app@" + digest, "", [][]byte{good}, ""},
		"none":              {"registry.example.com/team/app:v1", "", nil, "no signature"},
		"other key":         {"registry.example.com/team/app:v1", "", [][]byte{forge(digest, "registry.example.com/team/app:v1")}, "unknown key"},
		"other image":       {"registry.example.com/team/app:v1", "", [][]byte{sign(strings.Replace(digest, "0", "1", 1), "registry.example.com/team/app:v1")}, "another image"},
		"other tag":         {"registry.example.com/team/app:v2", "", [][]byte{good}, "for the identity"},
		"other repository":  {"registry.example.com/team/tool@" + digest, "", [][]byte{good}, "for the identity"},
		"exact digest":      {"registry.example.com/team/app@" + digest, `{"type": "matchExact"}`, [][]byte{good}, "for the identity"},
		"any tag":           {"registry.example.com/team/app:v2", `{"type": "matchRepository"}`, [][]byte{good}, ""},
		"one reference":     {"mirror.example.com/app:v2", `{"type": "exactReference", "dockerReference": "registry.example.com/team/app:v1"}`, [][]byte{good}, ""},
		"one repository":    {"mirror.example.com/app:v2", `{"type": "exactRepository", "dockerRepository": "registry.example.com/team/app"}`, [][]byte{good}, ""},
		"another reference": {"registry.example.com/team/app:v1", `{"type": "exactReference", "dockerReference": "registry.example.com/team/app:v2"}`, [][]byte{good}, "for the identity"},
		"mirror":            {"mirror.example.com/app:v1", `{"type": "remapIdentity", "prefix": "mirror.example.com", "signedPrefix": "registry.example.com/team"}`, [][]byte{good}, ""},
		"not the mirror":    {"mirror.example.com.evil/app:v1", `{"type": "remapIdentity", "prefix": "mirror.example.com", "signedPrefix": "registry.example.com/team"}`, [][]byte{good}, "for the identity"},
	} {
		t.Run(name, func(t *testing.T) {
			identity := ""
			if tt.identity != "" {
				identity = `, "signedIdentity": ` + tt.identity
			}
			policy, err := read(t, fmt.Sprintf(`{"default": [{"type": "signedBy", "keyType": "GPGKeys", "keyData": %q%s}]}`, base64.StdEncoding.EncodeToString(key), identity))
			if err != nil {
				t.Fatal(err)
			}
			image, err := reference.ParseDockerRef(tt.image)
			if err != nil {
				t.Fatal(err)
			}
			err = policy.Allow(image, digest, func() ([][]byte, error) { return tt.signatures, nil })
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("error %v, want %q", err, tt.problem)
			}
		})
	}
}

func TestInvalidPoliciesAreReported(t *testing.T) {
	for text, want := range map[string]string{
		`{`:               "read signature policy",
		`{"default": []}`: "must have a requirement",
		`{"default": [{"type": "sigstoreSigned"}]}`:                              `type is "sigstoreSigned"`,
		`{"default": [{"type": "signedBy", "keyType": "GPGKeys"}]}`:              "one of keyPath",
		`{"default": [{"type": "signedBy", "keyType": "X509", "keyPath": "a"}]}`: "keyType",
		`{"default": [{"type": "reject"}], "transports": {"docker": {"": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "a", "signedIdentity": {"type": "exactReference"}}]}}}`: "lacks a field that the type needs",
		`{"default": [{"type": "reject"}], "other": 1}`: "unknown field",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	missing, err := Read(filepath.Join(t.TempDir(), "none"))
	if err != nil {
		t.Fatal(err)
	}
	name, err := reference.ParseDockerRef("busybox")
	if err != nil || missing.Allow(name, digest, nil) != nil {
		t.Errorf("without a policy: %v", err)
	}
}
