package image

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ProtonMail/go-crypto/openpgp"
)

// signed returns a signature for an image, and the path of a file that contains the public key.
func signed(t *testing.T, digest, identity string) (content []byte, key string) {
	t.Helper()
	entity, err := openpgp.NewEntity("signer", "", "signer@example.com", nil)
	if err != nil {
		t.Fatal(err)
	}
	var public, message strings.Builder
	writer, err := openpgp.Sign(&message, entity, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(writer, `{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}}, "optional": null}`, digest, identity)
	key = filepath.Join(t.TempDir(), "key")
	err = errors.Join(err, writer.Close(), entity.Serialize(&public))
	if err := errors.Join(err, os.WriteFile(key, []byte(public.String()), 0o600)); err != nil {
		t.Fatal(err)
	}
	return []byte(message.String()), key
}

// TestSignaturesAreReadFromStores pulls an image before and after the store contains a signature.
// The registry itself has no signatures.
func TestSignaturesAreReadFromStores(t *testing.T) {
	host, digest := realRegistry(t)
	image := "registry.example.com/team/app:1"
	content, key := signed(t, digest, image)
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("policy.json", fmt.Sprintf(`{"default": [{"type": "reject"}], "transports": {"docker": {
		"registry.example.com": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": %q}]}}}`, key))
	write("stores/a.yaml", "docker: {registry.example.com: {sigstore: file://"+dir+"/store}}")
	f := newPullFixture(t, host)
	f.restart(t, func(s *Service) {
		s.SignaturePolicy, s.SignatureStores = filepath.Join(dir, "policy.json"), filepath.Join(dir, "stores")
	})
	f.mirror(t, "registry.example.com", host)
	for _, name := range []string{image, host + "/team/app:1"} {
		if _, err := f.pull(t, name); err == nil || !strings.Contains(err.Error(), "signature policy") {
			t.Errorf("%s without a signature: %v", name, err)
		}
	}
	write("store/team/app@"+strings.Replace(digest, ":", "=", 1)+"/signature-1", string(content))
	if _, err := f.pull(t, image); err != nil {
		t.Error(err)
	}
	write("policy.json", "{}")
	if _, err := f.pull(t, image); err == nil || !strings.Contains(err.Error(), "signature policy") {
		t.Errorf("with an invalid policy: %v", err)
	}
}
