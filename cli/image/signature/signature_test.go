package signature

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

const (
	image    = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	identity = "registry.example.com/shop/app:v1"
)

// signer is a GnuPG home directory with a private key.
type signer struct {
	t    *testing.T
	home string
}

func newSigner(t *testing.T) signer {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // a short path, because socket paths are limited
	if err != nil {
		t.Fatal(err)
	}
	s := signer{t, home}
	t.Cleanup(func() {
		// Ignore errors, because the directory is temporary.
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	s.gpg("", "--passphrase", "", "--quick-gen-key", "signer@example.com", "ed25519", "sign", "never")
	return s
}

func (s signer) gpg(in string, args ...string) []byte {
	s.t.Helper()
	command := exec.Command("gpg", append([]string{"--homedir", s.home, "--batch", "--quiet", "--pinentry-mode", "loopback"}, args...)...)
	command.Stdin = strings.NewReader(in)
	var problems strings.Builder
	command.Stderr = &problems
	out, err := command.Output()
	if err != nil {
		s.t.Fatalf("gpg %v: %v: %s", args, err, problems.String())
	}
	return out
}

// key exports the public key to a file and returns its path.
func (s signer) key(armor ...string) string {
	s.t.Helper()
	file := filepath.Join(s.t.TempDir(), "key")
	if err := os.WriteFile(file, s.gpg("", append(armor, "--export")...), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return file
}

func text(digest, identity string) string {
	return fmt.Sprintf(`{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}},
		"optional": {"creator": "test", "timestamp": 1539129600}}`, digest, identity)
}

// imageWith returns the image with the given signatures. The names of the signatures end with a, b
// and so on.
func imageWith(contents ...[]byte) *imagev1.Image {
	result := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: image}}
	for i, content := range contents {
		name := image + "@" + strings.Repeat(string(rune('a'+i)), 32)
		result.Signatures = append(result.Signatures, imagev1.ImageSignature{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: "atomic", Content: content})
	}
	return result
}

// verify runs the command on the image. v contains the flags.
func verify(t *testing.T, v *verifying, client *imagefake.Clientset) (stdout, stderr string, err error) {
	t.Helper()
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	v.IOStreams, v.user, v.images = streams, "auditor", client.ImageV1().Images()
	if err := v.validate([]string{image}); err != nil {
		return "", "", err
	}
	err = v.run(t.Context(), image, time.Unix(1600000000, 0))
	return out.String(), errOut.String(), err
}

func TestGnuPGSignaturesAreVerifiedAndSaved(t *testing.T) {
	good, other := newSigner(t), newSigner(t)
	client := imagefake.NewSimpleClientset(imageWith(
		good.gpg(text(image, identity), "--sign"), other.gpg(text(image, identity), "--sign"), good.gpg(text(image, "elsewhere.example.com/app:v1"), "--sign"),
	))
	trusted := func() (all []string) {
		t.Helper()
		existing, err := client.ImageV1().Images().Get(t.Context(), image, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, signature := range existing.Signatures {
			status := corev1.ConditionUnknown
			for _, condition := range signature.Conditions {
				if condition.Type == trustedCondition {
					status = condition.Status
				}
			}
			all = append(all, string(status))
		}
		return all
	}
	for _, armor := range [][]string{nil, {"--armor"}} {
		out, problems, err := verify(t, &verifying{identity: identity, keyFile: good.key(armor...)}, client)
		if err != nil || !strings.Contains(out, `image "`+image+`" identity is now confirmed (signed by GPG key "`) {
			t.Errorf("%v, %s", err, out)
		}
		if !strings.Contains(problems, "unknown key") || !strings.Contains(problems, `not for the expected identity "`+identity) {
			t.Errorf("for the other signatures, the command prints %s", problems)
		}
	}
	if got := strings.Join(trusted(), " "); got != "Unknown Unknown Unknown" {
		t.Errorf("without --save: %s", got)
	}
	if _, _, err := verify(t, &verifying{identity: identity, keyFile: good.key(), save: true}, client); err != nil {
		t.Error(err)
	}
	if got := strings.Join(trusted(), " "); got != "True False False" {
		t.Errorf("saved is %s", got)
	}
	existing, err := client.ImageV1().Images().Get(t.Context(), image, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if s := existing.Signatures[0]; s.ImageIdentity != identity || s.IssuedBy == nil || len(s.IssuedBy.CommonName) != 16 || s.Created.Unix() != 1539129600 || s.SignedClaims["creator"] != "test" {
		t.Errorf("the signature has the result %+v", s)
	}
	if out, _, err := verify(t, &verifying{removeAll: true}, client); err != nil || !strings.Contains(out, "removed from image") {
		t.Errorf("%v, %s", err, out)
	}
	if got := strings.Join(trusted(), " "); got != "Unknown Unknown Unknown" {
		t.Errorf("after --remove-all: %s", got)
	}
}

func TestKeysAreInGnuPGHomeByDefault(t *testing.T) {
	s := newSigner(t)
	home := t.TempDir()
	if err := os.Rename(s.key(), filepath.Join(home, "pubring.gpg")); err != nil {
		t.Fatal(err)
	}
	client := imagefake.NewSimpleClientset(imageWith(s.gpg(text(image, identity), "--sign")))
	t.Setenv("GNUPGHOME", home)
	if out, _, err := verify(t, &verifying{identity: identity}, client); err != nil || !strings.Contains(out, "identity is now confirmed") {
		t.Errorf("with GNUPGHOME: %v, %s", err, out)
	}
	t.Setenv("GNUPGHOME", t.TempDir())
	if _, _, err := verify(t, &verifying{identity: identity}, client); err == nil || !strings.Contains(err.Error(), "pubring.gpg") {
		t.Errorf("without a key ring: %v", err)
	}
}

func TestInvalidSignaturesAreRejected(t *testing.T) {
	s := newSigner(t)
	message := s.gpg(text(image, identity), "--sign", "--compress-algo", "none")
	forged := []byte(strings.Replace(string(message), "shop", "SHOP", 1))
	for want, content := range map[string][]byte{
		"is for the image":     s.gpg(text(strings.Replace(image, "0", "1", 1), identity), "--sign"),
		"verify signature":     forged,
		"read signature":       []byte("nonsense"),
		"must be \"atomic":     s.gpg(strings.Replace(text(image, identity), "atomic container", "other", 1), "--sign"),
		"unknown field":        s.gpg(strings.Replace(text(image, identity), `"type"`, `"more": 1, "type"`, 1), "--sign"),
		"no image or no":       s.gpg(text(image, ""), "--sign"),
		"more than one":        s.gpg(text(image, identity)+"{}", "--sign"),
		"not a signed message": s.gpg(text(image, identity), "--store"),
		"parse signed text":    s.gpg("text", "--sign"),
		"ends before":          message[:len(message)-100],
	} {
		_, problems, err := verify(t, &verifying{identity: identity, keyFile: s.key()}, imagefake.NewSimpleClientset(imageWith(content)))
		if err == nil || !strings.Contains(err.Error(), "none of the 1 signatures") {
			t.Errorf("%q: %v", want, err)
		}
		if want != "ends before" && !strings.Contains(problems, want) {
			t.Errorf("got %q, want %q", problems, want)
		}
	}
}

func TestVerifyReportsInvalidArguments(t *testing.T) {
	for want, v := range map[string]*verifying{
		"--expected-identity": {}, "--remove-all without": {removeAll: true, save: true}, "read public keys": {identity: identity, keyFile: "missing"},
	} {
		if _, _, err := verify(t, v, imagefake.NewSimpleClientset(imageWith())); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if err := (&verifying{identity: identity}).validate([]string{"app:v1"}); err == nil || !strings.Contains(err.Error(), "by its digest") {
		t.Errorf("a name: %v", err)
	}
	if _, _, err := verify(t, &verifying{identity: identity, keyFile: newSigner(t).key()}, imagefake.NewSimpleClientset(imageWith())); err == nil || !strings.Contains(err.Error(), "has no signatures") {
		t.Errorf("an image without signatures: %v", err)
	}
}
