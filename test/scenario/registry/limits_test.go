package registry

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

func TestLimitRangeLimitsImages(t *testing.T) {
	p := newProject(t)
	p.Apply(`
apiVersion: v1
kind: LimitRange
metadata: {name: images}
spec:
  limits:
  - {type: openshift.io/Image, max: {storage: 100Ki}}
  - {type: openshift.io/ImageStream, max: {openshift.io/image-tags: "1", openshift.io/images: "5"}}
`)
	const want = `maximum storage usage per openshift.io/Image is 100Ki by LimitRange`
	dir, result := image(t, "large")
	p.WaitFor("rejection of a large image", func(context.Context) error {
		if err := p.push(dir, "pushed:v1", p.token); err == nil || !strings.Contains(err.Error(), "denied") || !strings.Contains(err.Error(), want) {
			return fmt.Errorf("skopeo reads: %v", err)
		}
		return nil
	})
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.push(dir, "pushed@"+digest.String(), p.token); err == nil || !strings.Contains(err.Error(), "denied") || !strings.Contains(err.Error(), want) {
		t.Errorf("a push by digest alone: %v", err)
	}
	reference, _ := externalImage(p, result)
	other := p.Namespace + "-other"
	p.OC("new-project", other, "--skip-config-write")
	p.OC("import-image", "large:v1", "--from="+reference, "--confirm", "--insecure", "--namespace="+other)
	if got, err := p.TryOC("tag", other+"/large:v1", "taken:v1"); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("a tag of another project: %s, %v", got, err)
	}
	p.Apply(fmt.Sprintf(`
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: imported}
spec:
  tags: [{name: v1, from: {kind: DockerImage, name: %q}, importPolicy: {insecure: true}}]
`, reference))
	p.WaitFor("rejection of the import", func(context.Context) error {
		got, err := p.TryOC("get", "is", "imported", "-o", "jsonpath={.status.tags[0].conditions[0].reason}: {.status.tags[0].conditions[0].message}")
		if err == nil && (!strings.HasPrefix(got, "Forbidden: ") || !strings.Contains(got, want)) {
			err = fmt.Errorf("the condition of its tag: %s", got)
		}
		return err
	})
	if got, err := p.TryOC("tag", "registry.invalid/other:v1", "imported:other"); err == nil || !strings.Contains(err.Error(),
		`maximum openshift.io/image-tags usage per openshift.io/ImageStream is 1 by LimitRange`) {
		t.Errorf("a second reference: %s, %v", got, err)
	}
}
