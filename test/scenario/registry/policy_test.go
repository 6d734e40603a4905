package registry

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/test/kit"
)

// imagePolicy allows images from the cluster's registry and from one other registry, and a vendor's
// images. It resolves image names to digests.
const imagePolicy = `
apiVersion: v1
kind: ImagePolicyConfig
resolveImages: AttemptRewrite
executionRules:
- name: execution-denied
  onResources: [{resource: pods}, {resource: builds}]
  reject: true
  matchImageAnnotations: [{key: images.openshift.io/deny-execution, value: "true"}]
  skipOnResolutionFailure: true
- name: never
  reject: true
  ignoreNamespaceOverride: true
  matchRegistries: [bad.example.com]
- name: allow-integrated
  matchIntegratedRegistry: true
- name: allow-example
  matchRegistries: [registry.example.com]
`

// configurePolicy applies a policy to the running cluster until the test ends.
func configurePolicy(p *project, policy string) {
	p.t.Helper()
	before, err := os.ReadFile(p.MasterFile())
	if err != nil {
		p.t.Fatal(err)
	}
	var master, config map[string]any
	if err := errors.Join(yaml.Unmarshal(before, &master), yaml.Unmarshal([]byte(policy), &config)); err != nil {
		p.t.Fatal(err)
	}
	master["admissionConfig"] = map[string]any{"pluginConfig": map[string]any{"openshift.io/ImagePolicy": map[string]any{"configuration": config}}}
	changed, err := yaml.Marshal(master)
	if err != nil {
		p.t.Fatal(err)
	}
	refuses := func(want bool) {
		p.t.Helper()
		p.WaitFor(fmt.Sprintf("pods of other registries are refused: %t", want), func(context.Context) error {
			if _, err := p.pod("any", "other.example.com/app"); (err != nil) != want {
				return fmt.Errorf("a pod: %v", err)
			}
			return nil
		})
	}
	p.t.Cleanup(func() {
		if err := os.WriteFile(p.MasterFile(), before, 0o600); err != nil {
			p.t.Error(err)
			return
		}
		refuses(false)
	})
	if err := os.WriteFile(p.MasterFile(), changed, 0o600); err != nil {
		p.t.Fatal(err)
	}
	refuses(true)
}

// pod creates a pod as a dry run, and returns the image in the resulting pod.
func (p *project) pod(name, image string) (string, error) {
	return p.TryOC("run", name, "--image="+image, "--restart=Never", "--dry-run=server", "-o", "jsonpath={.spec.containers[0].image}")
}

// TestPolicySelectsImagesThatRun tries to run images from several registries, with annotations on
// the images and on the project.
func TestPolicySelectsImagesThatRun(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "policy")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	configurePolicy(p, imagePolicy)
	local := "docker-registry.default.svc:5000/" + p.Namespace + "/app"
	pinned := local + "@" + digest.String()
	try := func(title, image, want, problem string) {
		t.Helper()
		got, err := p.pod("one", image)
		switch {
		case problem == "" && (err != nil || got != want):
			t.Errorf("%s: image %q, %v, want %q", title, got, err, want)
		case problem != "" && (err == nil || !strings.Contains(err.Error(), problem)):
			t.Errorf("%s: image %q, %v, want %q", title, got, err, problem)
		}
	}
	try("of the cluster's registry", local+":v1", pinned, "")
	try("of an allowed registry", "registry.example.com/app:v1", "registry.example.com/app:v1", "")
	try("without a registry", "busybox:latest", "", "no rule accepts busybox:latest")
	try("of a refused registry", "bad.example.com/app", "", `rule "never" rejects`)

	workload := "{apiVersion: apps/v1, kind: Deployment, metadata: {name: app}, spec: {selector: {matchLabels: {app: app}}, " +
		"template: {metadata: {labels: {app: app}}, spec: {containers: [{name: app, image: '" + local + ":v1'}]}}}}"
	if got, err := p.TryOCWithInput(workload, "create", "-f", "-", "--dry-run=server", "-o", "jsonpath={.spec.template.spec.containers[0].image}"); err != nil || got != pinned {
		t.Errorf("a deployment has the image %s, %v", got, err)
	}

	// The policy must not disclose a stream's image to users who cannot pull from the stream.
	newProjectOf(t, p)
	other := p.Namespace + "-other"
	foreign := func() (string, error) {
		return p.ServiceAccount(other, "pusher").Try("POST", kit.CorePath(other, "pods")+"?",
			"{apiVersion: v1, kind: Pod, metadata: {name: one}, spec: {containers: [{name: one, image: '"+local+":v1'}]}}")
	}
	if got, err := foreign(); err != nil || !strings.Contains(got, local+":v1") || strings.Contains(got, digest.String()) {
		t.Errorf("a pod of another project is %s, %v", got, err)
	}
	p.OC("annotate", "image/"+digest.String(), "images.openshift.io/deny-execution=true")
	if got, err := foreign(); err == nil || !strings.Contains(got, `rule \"execution-denied\" rejects`) {
		t.Errorf("with the image marked, a pod of another project is %s, %v", got, err)
	}
	try("marked", local+":v1", "", `rule "execution-denied" rejects`)
	p.Apply(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {source: {dockerfile: FROM scratch},
		strategy: {dockerStrategy: {from: {kind: ImageStreamTag, name: "app:v1"}}}}}`)
	if out, err := p.TryOC("start-build", "app"); err == nil || !strings.Contains(err.Error(), `rule "execution-denied" rejects `+local) {
		t.Errorf("a build of a marked image: %s, %v", out, err)
	}
	byHand := `{apiVersion: build.openshift.io/v1, kind: Build, metadata: {name: by-hand}, spec: {strategy: {sourceStrategy: {from: {kind: ImageStreamTag, name: "app:v1"}}}}}`
	if out, err := p.TryOCWithInput(byHand, "create", "-f", "-"); err == nil || !strings.Contains(err.Error(), `rule "execution-denied" rejects `+local) {
		t.Errorf("a build of a marked image that a user creates directly: %s, %v", out, err)
	}
	p.OC("annotate", "namespace", p.Namespace, "alpha.image.policy.openshift.io/ignore-rules=execution-denied,never")
	p.WaitFor("the project ignores the rule", func(context.Context) error {
		_, err := p.pod("one", local+":v1")
		return err
	})
	try("of a refused registry, which no project may ignore", "bad.example.com/app", "", `rule "never" rejects`)
}
