package registry

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestUnreferencedImagesAreRemovedFromDisk(t *testing.T) {
	p := newProject(t)
	oldDir, old := image(t, "old")
	newDir, current := image(t, "new")
	for _, dir := range []string{oldDir, newDir} {
		if err := p.push(dir, "app:latest", p.token); err != nil {
			t.Fatal(err)
		}
	}
	oldName, err := old.Digest()
	if err != nil {
		t.Fatal(err)
	}
	newName, err := current.Digest()
	if err != nil {
		t.Fatal(err)
	}
	pruner := p.account("pruner", "")
	p.OC("adm", "policy", "add-cluster-role-to-user", "system:image-pruner", "-z", "pruner")
	prune := func(more ...string) string {
		t.Helper()
		return p.OC(append([]string{"adm", "prune", "images", "--keep-tag-revisions=1", "--keep-younger-than=0", "--token=" + pruner,
			fmt.Sprintf("--registry-url=https://%s:5000", p.Address)}, more...)...)
	}
	blob := p.Path("registry", "docker", "registry", "v2", "blobs", "sha256", oldName.Hex[:2], oldName.Hex, "data")
	if _, err := os.Stat(blob); err != nil {
		t.Fatal(err)
	}

	if out := p.OC("adm", "top", "images"); !strings.Contains(out, oldName.String()) || !strings.Contains(out, newName.String()) {
		t.Errorf("oc adm top images lacks what can be pruned:\n%s", out)
	}
	p.OC("run", "user", "--restart=Never", "--image=docker-registry.default.svc:5000/"+p.Namespace+"/app@"+oldName.String())
	if out := prune("--confirm"); strings.Contains(out, oldName.String()) {
		t.Errorf("an image that a pod uses was removed:\n%s", out)
	}
	p.OC("delete", "pod", "user", "--force")
	if out := prune(); !strings.Contains(out, oldName.String()) || strings.Contains(out, newName.String()) {
		t.Errorf("a dry run prints\n%s", out)
	}
	if _, err := p.pull("app@"+oldName.String(), p.token); err != nil {
		t.Errorf("after a dry run: %v", err)
	}
	out := prune("--confirm")
	for _, want := range []string{p.Namespace + "/app", "Deleting registry layer blobs ...", "Deleting images from server ..."} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if remaining, _ := filepath.Glob(blob); len(remaining) > 0 {
		t.Error("the image is still on the disk")
	}
	if _, err := p.pull("app@"+oldName.String(), p.token); err == nil {
		t.Error("a removed image can be pulled")
	}
	if _, err := p.pull("app:latest", p.token); err != nil {
		t.Errorf("pull of the remaining image: %v", err)
	}
	if err := p.push(oldDir, "app:again", p.token); err != nil {
		t.Fatal(err)
	}
	if _, err := p.pull("app:again", p.token); err != nil {
		t.Errorf("pull of an image after another push: %v", err)
	}
}
