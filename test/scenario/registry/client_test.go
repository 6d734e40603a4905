package registry

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// file writes a file for a command, and returns its path.
func file(t *testing.T, name string, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestImagesAreMirroredAppendedAndExtracted uses `oc image` to copy an image from another registry
// to the cluster's registry, append a layer, and extract a file. A trigger that the client sets
// then starts a deployment.
func TestImagesAreMirroredAppendedAndExtracted(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "mirrored")
	reference, _ := externalImage(p, result)
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	host := p.Address.String() + ":5000"
	credentials := file(t, "config.json", fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, host, base64.StdEncoding.EncodeToString([]byte("any:"+p.token))))
	oc := func(args ...string) string {
		t.Helper()
		return p.OC(append([]string{"image", args[0], "--insecure", "-a", credentials}, args[1:]...)...)
	}
	app := host + "/" + p.Namespace + "/app"
	oc("mirror", reference, app+":v1")
	const show = "jsonpath={.status.items[0].image} {.image.metadata.name}"
	if got, want := p.OC("get", "imagetag", "app:v1", "-o", show), digest.String()+" "+digest.String(); got != want {
		t.Errorf("the tag is %s, want %s", got, want)
	}
	p.Apply("{apiVersion: image.openshift.io/v1, kind: ImageTag, metadata: {name: 'app:stable'}, spec: {name: stable, from: {kind: ImageStreamTag, name: 'app:v1'}}}")
	if got := p.OC("get", "imagetags", "-o", "jsonpath={range .items[*]}{.metadata.name}={.status.items[0].image} {end}"); got != fmt.Sprintf("app:stable=%s app:v1=%[1]s ", digest) {
		t.Errorf("the tags are %s", got)
	}
	p.OC("delete", "imagetag", "app:stable")

	p.Apply("{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {replicas: 0, selector: {matchLabels: {app: app}}, " +
		"template: {metadata: {labels: {app: app}}, spec: {containers: [{name: app, image: ' '}]}}}}")
	p.OC("set", "triggers", "deploy/app", "--from-image=app:v2", "-c", "app")
	oc("append", "--from", app+":v1", "--to", app+":v2", "--created-at=0", `--image={"Labels":{"more":"yes"}}`, file(t, "layer.tar", archive(t, map[string]string{"more": "added"})))
	p.WaitFor("the deployment has the new image", func(context.Context) error {
		want, err := p.TryOC("get", "istag", "app:v2", "-o", "jsonpath={.image.dockerImageReference}")
		got, problem := p.TryOC("get", "deploy", "app", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
		if err != nil || problem != nil || got != want {
			return fmt.Errorf("the image is %q, want %q; %v, %v", got, want, err, problem)
		}
		return nil
	})
	if got := oc("info", app+":v2"); !strings.Contains(got, "more=yes") || !strings.Contains(got, " in 2 layers") {
		t.Errorf("the new image is\n%s", got)
	}
	into := t.TempDir()
	oc("extract", app+":v2", "--path", "/*or*:"+into)
	for name, want := range map[string]string{"more": "added", "word": "mirrored"} {
		if content, err := os.ReadFile(filepath.Join(into, name)); err != nil || string(content) != want {
			t.Errorf("%s is %q, %v", name, content, err)
		}
	}
	p.OC("set", "image-lookup", "app")
	if got, err := p.pod("one", "app:v1"); err != nil || !strings.HasSuffix(got, digest.String()) {
		t.Errorf("a pod's image is %s, %v", got, err)
	}
}

// TestSignaturesAreAddedAndVerified signs an image with GnuPG, adds the signature through the
// registry's API, and verifies the signature that the registry returns.
func TestSignaturesAreAddedAndVerified(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "signed")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	identity := "docker-registry.default.svc:5000/" + p.Namespace + "/app:v1"
	content, key := sign(t, fmt.Sprintf(`{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}}, "optional": {}}`, digest, identity))
	signer, auditor := p.account("signer", "system:image-puller"), p.account("auditor", "")
	p.OC("adm", "policy", "add-cluster-role-to-user", "system:image-auditor", "-z", "auditor")
	address := fmt.Sprintf("https://%s:5000/extensions/v2/%s/app/signatures/%s", p.Address, p.Namespace, digest)
	addSignature := func(name string) int {
		t.Helper()
		body, err := json.Marshal(map[string]any{"schemaVersion": 2, "type": "atomic", "name": name, "content": content})
		if err != nil {
			t.Fatal(err)
		}
		status, _ := p.call(http.MethodPut, address, signer, string(body))
		return status
	}
	name := digest.String() + "@" + strings.Repeat("4d", 16)
	if status := addSignature(name); status != http.StatusForbidden && status != http.StatusUnauthorized {
		t.Errorf("a user without permission adds a signature: %d", status)
	}
	p.OC("adm", "policy", "add-cluster-role-to-user", "system:image-signer", "-z", "signer")
	p.WaitFor("the signature is added", func(context.Context) error {
		if status := addSignature(name); status != http.StatusCreated && status != http.StatusConflict {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	if status := addSignature(name + "0"); status != http.StatusBadRequest {
		t.Errorf("a name with 33 characters: %d", status)
	}
	var read struct {
		Signatures []struct {
			Version    int `json:"schemaVersion"`
			Name, Type string
			Content    []byte
		}
	}
	status, resp := p.call(http.MethodGet, address, signer, "")
	if err := json.Unmarshal([]byte(resp), &read); err != nil || status != http.StatusOK || len(read.Signatures) != 1 || read.Signatures[0].Name != name ||
		read.Signatures[0].Version != 2 || read.Signatures[0].Type != "atomic" || string(read.Signatures[0].Content) != string(content) {
		t.Errorf("the registry responds with %d, %s, %v", status, resp, err)
	}

	verify := func(args ...string) (string, error) {
		return p.TryOC(append([]string{"adm", "verify-image-signature", digest.String(), "--token=" + auditor}, args...)...)
	}
	if _, err := verify("--expected-identity=other.example.com/app:v1", "--public-key="+key); err == nil || !strings.Contains(err.Error(), "expected identity") {
		t.Errorf("another identity: %v", err)
	}
	if out, err := verify("--expected-identity="+identity, "--public-key="+key, "--save"); err != nil || !strings.Contains(out, "identity is now confirmed") {
		t.Errorf("%s, %v", out, err)
	}
	const conditions = `jsonpath={range .signatures[*].conditions[*]}{.type}={.status} {end}`
	if got := p.OC("get", "image", digest.String(), "-o", conditions); got != "Trusted=True ForImage=True " {
		t.Errorf("the conditions are %s", got)
	}
	if _, err := verify("--remove-all"); err != nil {
		t.Error(err)
	}
	if got := p.OC("get", "image", digest.String(), "-o", conditions); got != "" {
		t.Errorf("after --remove-all: %s", got)
	}
}

func TestSignaturesOfStoreAreImported(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "stored")
	reference, _ := externalImage(p, result)
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	host, repository, _ := strings.Cut(strings.TrimSuffix(reference, ":v1"), "/")
	content, key := sign(t, fmt.Sprintf(`{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}}, "optional": {}}`, digest, reference))
	store, configured := t.TempDir(), filepath.Join(filepath.Dir(p.MasterFile()), "stores")
	t.Cleanup(func() { _ = os.RemoveAll(configured) }) // the cluster's directory is removed anyway
	for file, text := range map[string]string{
		filepath.Join(store, repository+"@"+strings.Replace(digest.String(), ":", "=", 1), "signature-1"): string(content),
		filepath.Join(configured, "default.yaml"):                                                         fmt.Sprintf("docker: {%q: {sigstore: %q}}", host, "file://"+store),
	} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p.OC("import-image", "app:v1", "--from="+reference, "--confirm", "--insecure")
	p.WaitFor("the signature is imported and trusted", func(context.Context) error {
		_, err := p.TryOC("adm", "verify-image-signature", digest.String(), "--expected-identity="+reference, "--public-key="+key)
		return err
	})
}

// sign signs text with a new GnuPG key. It returns the signature and the path of a file with the
// public key.
func sign(t *testing.T, text string) (content []byte, key string) {
	t.Helper()
	home, err := os.MkdirTemp("", "gpg") // short, because a socket's path has a length limit
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Ignore the error, because the directory is removed in any case.
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	gpg := func(in string, args ...string) []byte {
		t.Helper()
		command := exec.Command("gpg", append([]string{"--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback"}, args...)...)
		command.Stdin = strings.NewReader(in)
		out, err := command.Output()
		if err != nil {
			t.Fatalf("gpg %v: %v", args, err)
		}
		return out
	}
	gpg("", "--passphrase", "", "--quick-gen-key", "signer@example.com", "ed25519", "sign", "never")
	return gpg(text, "--sign"), file(t, "key.gpg", gpg("", "--export"))
}

// call sends a request to the registry with a token.
func (p *project) call(method, address, token, body string) (status int, resp string) {
	p.t.Helper()
	request, err := http.NewRequestWithContext(p.t.Context(), method, address, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	request.SetBasicAuth("any", token)
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response.StatusCode, string(content)
}
