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

// TestCronJobOfExamplePrunes runs the CronJob in examples/pruning, which also prunes builds and
// deployments.
func TestCronJobOfExamplePrunes(t *testing.T) {
	p := newProject(t)
	oldDir, old := image(t, "expired") // only this project refers to the image
	currentDir, _ := image(t, "current")
	for _, dir := range []string{oldDir, currentDir} {
		if err := p.push(dir, "app:latest", p.token); err != nil {
			t.Fatal(err)
		}
	}
	example, err := os.ReadFile(filepath.Join("..", "..", "..", "examples", "pruning", "pruner.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.OC("delete", "clusterrole,clusterrolebinding", "-l", "example=pruning") })
	p.Apply(strings.NewReplacer(
		"namespace: pruner", "namespace: "+p.Namespace, "--keep-tag-revisions=3", "--keep-tag-revisions=1", "--keep-younger-than=60m", "--keep-younger-than=0",
	).Replace(string(example)))
	p.OC("create", "job", "now", "--from=cronjob/pruner")
	p.OC("wait", "job/now", "--for=condition=complete", "--timeout=4m")
	name, err := old.Digest()
	if err != nil {
		t.Fatal(err)
	}
	if output := p.OC("logs", "job/now"); !strings.Contains(output, p.Namespace+"/app") {
		t.Errorf("the job prints\n%s", output)
	}
	if images := p.OC("get", "images", "-o", "name"); strings.Contains(images, name.String()) {
		t.Errorf("the old image remains:\n%s", images)
	}
	if _, err := p.pull("app:latest", p.token); err != nil {
		t.Errorf("pull of the current image: %v", err)
	}
}
