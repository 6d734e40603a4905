package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestNodesPullOnlyImagesSignedAsPolicyRequires changes the node's signature policy for
// repositories in the test's project, and then signs an image.
func TestNodesPullOnlyImagesSignedAsPolicyRequires(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "trusted")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	repository := "docker-registry.default.svc:5000/" + p.Namespace + "/app"
	content, key := sign(t, fmt.Sprintf(`{"critical": {"type": "atomic container signature", "image": {"docker-manifest-digest": %q}, "identity": {"docker-reference": %q}}, "optional": {}}`, digest, repository+":v1"))
	file := p.Path("node", "policy.json")
	t.Cleanup(func() { _ = os.Remove(file) }) // the cluster's directory is removed anyway
	policy := fmt.Sprintf(`{"default": [{"type": "insecureAcceptAnything"}], "transports": {"docker": {
		%q: [{"type": "reject"}], %q: [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": %q}]}}}`, repository+":v2", repository, key)
	if err := os.WriteFile(file, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	p.OC("tag", "app:v1", "app:v2")
	run := func(name, tag string) {
		t.Helper()
		p.OC("run", name, "--image="+repository+":"+tag, "--image-pull-policy=Always", "--restart=Never")
	}
	rejected := func(name string) {
		t.Helper()
		p.WaitFor("pod "+name+" that the policy rejects", func(context.Context) error {
			statuses := p.Pod(name).Status.ContainerStatuses
			if len(statuses) != 1 || statuses[0].State.Waiting == nil || !strings.Contains(statuses[0].State.Waiting.Message, "signature policy of the node") {
				return fmt.Errorf("its containers are %+v", statuses)
			}
			return nil
		})
	}
	run("unsigned", "v1")
	rejected("unsigned")

	signer := p.account("signer", "system:image-puller")
	p.OC("adm", "policy", "add-cluster-role-to-user", "system:image-signer", "-z", "signer")
	body, err := json.Marshal(map[string]any{"schemaVersion": 2, "type": "atomic", "name": digest.String() + "@" + strings.Repeat("5e", 16), "content": content})
	if err != nil {
		t.Fatal(err)
	}
	p.WaitFor("the signature is added", func(context.Context) error {
		if status, _ := p.call(http.MethodPut, fmt.Sprintf("https://%s:5000/extensions/v2/%s/app/signatures/%s", p.Address, p.Namespace, digest), signer, string(body)); status != http.StatusCreated {
			return fmt.Errorf("status %d", status)
		}
		return nil
	})
	run("signed", "v1")
	if pod := p.WaitPodRunning("signed"); pod.Status.Phase != corev1.PodRunning {
		t.Errorf("the pod is %s", pod.Status.Phase)
	}
	run("rejected", "v2")
	rejected("rejected")
}
