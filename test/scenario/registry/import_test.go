package registry

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	other "github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// externalImage starts an external registry with an image. It returns the image's reference and a
// function that stops the registry.
func externalImage(p *project, image v1.Image) (reference string, stop func()) {
	p.t.Helper()
	listener, err := listen(p)
	if err != nil {
		p.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: other.New(other.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)))}
	go func() { _ = server.Serve(listener) }()
	p.t.Cleanup(func() { _ = server.Close() })
	reference = listener.Addr().String() + "/team/app:v1"
	replace(p.t, reference, image)
	return reference, func() { _ = server.Close() }
}

func replace(t *testing.T, reference string, image v1.Image) {
	t.Helper()
	tag, err := name.NewTag(reference, name.Insecure)
	if err == nil {
		err = remote.Write(tag, image)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestImportedImageIsPulledThroughAndStored(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "imported")
	reference, stop := externalImage(p, result)
	p.Apply(fmt.Sprintf(`
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: app}
spec:
  tags:
  - {name: v1, from: {kind: DockerImage, name: %q}, importPolicy: {insecure: true}, referencePolicy: {type: Local}}
  - {name: stable, from: {kind: ImageStreamTag, name: "app:v1"}}
  - {name: gone, from: {kind: DockerImage, name: %q}, importPolicy: {insecure: true}}
`, reference, strings.Replace(reference, "v1", "v9", 1)))
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.WaitFor("the tags are imported", func(context.Context) error {
		got, err := p.TryOC("get", "is", "app", "-o", `jsonpath={range .status.tags[*]}{.tag}={.items[0].image}{.conditions[0].reason} {end}`)
		for _, want := range []string{"v1=" + digest.String() + " ", "stable=" + digest.String() + " ", "gone=NotFound "} {
			if err == nil && !strings.Contains(got, want) {
				err = fmt.Errorf("tags %s, want %s", got, want)
			}
		}
		return err
	})
	outside := strings.Replace(reference, "/app:", "/outside:", 1)
	replace(t, outside, result)
	p.OC("new-app", outside, "--insecure-registry")
	p.WaitFor("an application of the image", func(context.Context) error {
		const path = `jsonpath={.spec.template.spec.containers[0].image} {.spec.template.metadata.annotations.openshift\.io/container\.outside\.image\.entrypoint}`
		got, err := p.TryOC("get", "dc", "outside", "-o", path)
		if err == nil && !strings.HasPrefix(got, strings.TrimSuffix(outside, ":v1")+"@"+digest.String()+` ["/bin/busybox","sh","-c",`) {
			err = fmt.Errorf("it has %s", got)
		}
		return err
	})
	for range 2 { // during the second run, the image's registry is unavailable
		dir, err := p.pull("app:v1", p.token)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := p.try("inspect", "oci:"+dir); err != nil || !strings.Contains(got, "WORD=imported") {
			t.Errorf("pulled %s, %v", got, err)
		}
		stop()
	}
}

func TestNewImageReachesDeployment(t *testing.T) {
	p := newProject(t)
	first, _ := image(t, "first")
	if err := p.push(first, "app:latest", p.token); err != nil {
		t.Fatal(err)
	}
	p.Apply(`
apiVersion: apps/v1
kind: Deployment
metadata:
  name: app
  annotations:
    image.openshift.io/triggers: '[{"from":{"kind":"ImageStreamTag","name":"app:latest"},"fieldPath":"spec.template.spec.containers[?(@.name==\"app\")].image"}]'
spec:
  replicas: 0
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec: {containers: [{name: app, image: " "}]}
`)
	deployed := func() {
		t.Helper()
		want := strings.TrimSpace(p.OC("get", "istag", "app:latest", "-o", "jsonpath={.image.dockerImageReference}"))
		p.WaitFor("update of the deployment to the image "+want, func(context.Context) error {
			got, err := p.TryOC("get", "deployment", "app", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
			if err == nil && got != want {
				err = fmt.Errorf("it has %s", got)
			}
			return err
		})
	}
	deployed()
	second, _ := image(t, "second")
	if err := p.push(second, "app:latest", p.token); err != nil {
		t.Fatal(err)
	}
	deployed()
}

func TestPodsReferToLocalStreams(t *testing.T) {
	p := newProject(t)
	dir, result := image(t, "local")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	p.OC("patch", "is", "app", "--type=merge", "-p", `{"spec":{"lookupPolicy":{"local":true}}}`)
	want := fmt.Sprintf("docker-registry.default.svc:5000/%s/app@%s", p.Namespace, digest)
	if got, err := p.pod("one", "app:v1"); err != nil || got != want {
		t.Errorf("image %s, %v, want %s", got, err, want)
	}
	if got, err := p.pod("two", "app:v2"); err != nil || got != "app:v2" {
		t.Errorf("a tag that does not exist became %s, %v", got, err)
	}
	p.OC("annotate", "image/"+digest.String(), "images.openshift.io/deny-execution=true")
	if got, err := p.pod("three", "app:v1"); err == nil || !strings.Contains(err.Error(), "prohibited by policy") {
		t.Errorf("a prohibited image: %s, %v", got, err)
	}
}
