package registry

import (
	"context"
	"fmt"
	"io"
	"strings"
	"testing"
)

func TestTagsAreSetAndRemovedByCommands(t *testing.T) {
	p := newProject(t)
	_, result := image(t, "one")
	reference, _ := externalImage(p, result)
	digest, err := result.Digest()
	if err != nil {
		t.Fatal(err)
	}
	says := func(want string, args ...string) {
		t.Helper()
		if got := p.OC(args...); strings.TrimSpace(got) != want {
			t.Errorf("oc %s prints %q, want %q", strings.Join(args, " "), got, want)
		}
	}
	tagIs := func(tag, want string) {
		t.Helper()
		p.WaitFor(tag+" is "+want, func(context.Context) error {
			got, err := p.TryOC("get", "istag", tag, "-o", "jsonpath={.image.metadata.name}")
			if err == nil && got != want {
				err = fmt.Errorf("it is %q", got)
			}
			return err
		})
	}
	says(fmt.Sprintf("Tag app:v1 set to import %s periodically.", reference), "tag", reference, "app:v1", "--insecure", "--scheduled")
	tagIs("app:v1", digest.String())
	says(fmt.Sprintf("Tag app:pinned set to app@%s.", digest), "tag", "app:v1", "app:pinned")
	says("Tag app:stable set up to track app:v1.", "tag", "--alias", "app:v1", "app:stable")

	_, other := image(t, "two")
	replace(t, reference, other)
	next, err := other.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.OC("import-image", "app:stable", "--dry-run"); !strings.Contains(got, "app imported (dry run)") || !strings.Contains(got, next.String()) {
		t.Errorf("import-image --dry-run prints %q", got)
	}
	if got := p.OC("get", "istag", "app:v1", "-o", "jsonpath={.image.metadata.name}"); got != digest.String() {
		t.Errorf("after a dry run the tag is %s", got)
	}
	if got := p.OC("import-image", "app:v1"); !strings.Contains(got, "imagestream.image.openshift.io/app imported") {
		t.Errorf("import-image prints %q", got)
	}
	tagIs("app:v1", next.String())
	tagIs("app:stable", next.String())
	tagIs("app:pinned", digest.String())
	says(fmt.Sprintf("Tag app:pinned set to app@%s.", next), "tag", "app:v1", "app:pinned")
	tagIs("app:pinned", next.String())
	says(fmt.Sprintf("Deleted tag %s/app:v1.", p.Namespace), "tag", "-d", "app:v1")
	if _, err := p.TryOC("get", "istag", "app:v1"); err == nil {
		t.Error("the tag still exists")
	}
	if _, err := p.TryOC("import-image", "none", "--from="+reference); err == nil || !strings.Contains(err.Error(), "pass --confirm to create and import") {
		t.Errorf("import into a missing stream: %v", err)
	}
}

func TestRegistryExistsAfterStart(t *testing.T) {
	p := newProject(t)
	if got := p.OC("adm", "registry"); !strings.Contains(got, `Docker registry "docker-registry" service exists`) {
		t.Errorf("oc adm registry prints %q", got)
	}
	notes, err := io.ReadAll(p.StartOCForErrors("adm", "registry", "--mount-host=/srv/registry", "--replicas=2"))
	if err != nil || !strings.Contains(string(notes), "--mount-host has no effect: set slipway.registry.directory of the MasterConfig") {
		t.Errorf("oc adm registry --mount-host prints %q, %v", notes, err)
	}
}
