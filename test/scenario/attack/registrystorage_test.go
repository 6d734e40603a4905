package attack

import (
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestPushCannotExceedQuotaOfProject(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.evil)
	const quota = "slipway.openshift.io/registry-quota"
	s.OC("annotate", "namespace", s.evil, quota+"=1Mi")
	s.mallory.Refused("PATCH", "/apis/project.openshift.io/v1/projects/"+s.evil, `{"metadata":{"annotations":{"`+quota+`":"none"}}}`, "immutable", func(err error) bool { return err != nil })
	s.mallory.MayNot("PATCH", "/api/v1/namespaces/"+s.evil, `{"metadata":{"annotations":{"`+quota+`":"none"}}}`, "cannot patch")
	if err := s.push(t, s.evil, "app:small", noise(t, 100<<10)); err != nil {
		t.Fatal(err)
	}
	err := s.push(t, s.evil, "app:large", noise(t, 2<<20))
	if err == nil || !strings.Contains(err.Error(), "DENIED") || !strings.Contains(err.Error(), "its quota is 1Mi") {
		t.Errorf("a push over the quota: %v", err)
	}
	s.OC("annotate", "namespace", s.evil, quota+"=8Mi", "--overwrite")
	s.WaitFor("the larger quota", func(context.Context) error { return s.push(t, s.evil, "app:large", noise(t, 2<<20)) })
	if got := s.OC("get", "istag", "app:large", "-n", s.evil, "-o", "jsonpath={.image.metadata.name}"); got == "" {
		t.Error("the stream does not have the image")
	}
}

func TestContentOfDeletedProjectIsRemovedFromRegistry(t *testing.T) {
	s := tenants(t)
	s.waitBuilder(t, s.shop)
	image := build(t)
	if err := s.push(t, s.shop, "app:latest", image); err != nil {
		t.Fatal(err)
	}
	if status, body := s.pull(t, "builder", s.shop, "POST", "/v2/"+s.shop+"/app/blobs/uploads/"); status != http.StatusAccepted {
		t.Fatalf("start an upload: %d %s", status, body)
	}
	_, layer, _ := strings.Cut(image.layer(t), ":")
	blob := s.Path("registry", "docker", "registry", "v2", "blobs", "sha256", layer[:2], layer, "data")
	if _, err := os.Stat(blob); err != nil {
		t.Fatal(err)
	}
	s.alice.May("DELETE", "/apis/project.openshift.io/v1/projects/"+s.shop, "")
	for name, path := range map[string]string{
		"repositories and uploads": s.Path("registry", "docker", "registry", "v2", "repositories", s.shop), "layer": blob,
	} {
		s.WaitFor("the "+name+" of a deleted project to be removed", func(context.Context) error {
			if _, err := os.Stat(path); !os.IsNotExist(err) {
				return fmt.Errorf("%q still exists, %v", path, err)
			}
			return nil
		})
	}
	s.WaitFor("the record of its image to be removed", func(context.Context) error {
		if got, err := s.TryOC("get", "image", image.digest); err == nil {
			return fmt.Errorf("there is %s", got)
		}
		return nil
	})
	// Mallory requests a project with the deleted project's name, and then the content of the
	// deleted project by its digests.
	s.WaitFor("the name of the project", func(context.Context) error {
		_, err := s.mallory.Try("POST", "/apis/project.openshift.io/v1/projectrequests",
			fmt.Sprintf(`{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":%q}}`, s.shop))
		return err
	})
	s.waitBuilder(t, s.shop)
	for _, path := range []string{"/app/manifests/" + image.digest, "/app/blobs/" + image.layer(t)} {
		if status, body := s.pull(t, "builder", s.shop, "GET", "/v2/"+s.shop+path); status != http.StatusNotFound {
			t.Errorf("GET %s of the former project: %d %s", path, status, body)
		}
	}
}

// disk mounts a new file system and returns an empty directory on it.
func disk(t *testing.T, size int64) string {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, "disk")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("/tmp", "disk-") // a data directory's path must be short
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=1", file}, {"mount", "-o", "loop", file, dir}} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v: %s", command, err, out)
		}
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, 0); err != nil {
			t.Errorf("unmount %q: %v", dir, err)
		}
		if err := os.Remove(dir); err != nil {
			t.Error(err)
		}
	})
	data := filepath.Join(dir, "d") // the cluster removes this directory when it ends
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	return data
}

// bulk returns an image with one large layer, whose content depends on number.
func bulk(t *testing.T, number uint64, size int) v1.Image {
	t.Helper()
	content := make([]byte, size)
	binary.BigEndian.PutUint64(content, number)
	image, err := mutate.AppendLayers(mutate.MediaType(empty.Image, types.OCIManifestSchema1), static.NewLayer(content, types.OCIUncompressedLayer))
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// TestFullRegistryDoesNotStopTheAPI fills the registry in a cluster whose etcd, kubelet and
// registry share a small disk.
func TestFullRegistryDoesNotStopTheAPI(t *testing.T) {
	c := kit.Start(t, kit.Options{
		// These values are the defaults, which the kit lowers for other tests.
		DataDir: disk(t, 3<<30), Master: "slipway: {registry: {reserve: 16%}}",
		Node: `kubeletArguments: {eviction-hard: ["nodefs.available<10%,imagefs.available<15%,nodefs.inodesFree<5%,memory.available<100Mi"]}`,
	})
	s := &stage{Cluster: c, mallory: c.User("mallory"), evil: "evil"}
	s.mallory.RequestProject(c, s.evil)
	s.waitBuilder(t, s.evil)
	var rejection error
	for number := range uint64(40) {
		if rejection = s.push(t, s.evil, "app:latest", bulk(t, number, 100<<20)); rejection != nil {
			break
		}
	}
	if rejection == nil || !strings.Contains(rejection.Error(), "DENIED") || !strings.Contains(rejection.Error(), "slipway.registry.reserve") {
		t.Fatalf("the registry is not full: %v", rejection)
	}
	var free unix.Statfs_t
	if err := unix.Statfs(c.DataDir, &free); err != nil {
		t.Fatal(err)
	}
	if share := float64(free.Bavail) / float64(free.Blocks); share < 0.15 {
		t.Errorf("the registry left %.0f %% of the disk", 100*share)
	}
	for number := range 50 {
		s.mallory.May("POST", kit.CorePath(s.evil, "configmaps"), fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: c%d}, data: {a: %q}}", number, strings.Repeat("a", 10<<10)))
	}
	// The rejected push has released its space. Simulate a program that uses this space and a
	// little more.
	if err := unix.Statfs(c.DataDir, &free); err != nil {
		t.Fatal(err)
	}
	more := int64(free.Bavail)*free.Bsize - int64(0.16*float64(free.Blocks)*float64(free.Bsize)) + 8<<20
	filler, err := os.Create(filepath.Join(c.DataDir, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer filler.Close()
	if err := unix.Fallocate(int(filler.Fd()), 0, 0, more); err != nil {
		t.Fatal(err)
	}
	c.WaitFor("the status to report the full disk", func(context.Context) error {
		if out := c.Slipway("status").Stdout; !strings.Contains(out, "pushes are rejected: the disk of the registry is full") {
			return fmt.Errorf("got\n%s", out)
		}
		return nil
	})
	if got := s.OC("get", "nodes", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="DiskPressure")].status}`); got != "False" {
		t.Errorf("DiskPressure of the node is %q", got)
	}
}
