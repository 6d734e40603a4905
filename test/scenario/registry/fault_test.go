package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"
)

// pruner creates a service account that is allowed to prune. It returns a function that runs `oc
// adm prune` for a kind of objects, such as "images", and returns the output.
func (p *project) pruner() (prune func(title string, more ...string) string) {
	p.t.Helper()
	try := p.tryPruner()
	return func(title string, more ...string) string {
		p.t.Helper()
		out, err := try(title, more...)
		if err != nil {
			p.t.Fatal(err)
		}
		return out
	}
}

// tryPruner works like pruner, but its function returns an error instead of failing the test.
func (p *project) tryPruner() (prune func(title string, more ...string) (string, error)) {
	p.t.Helper()
	token := p.account("pruner", "")
	p.OC("adm", "policy", "add-cluster-role-to-user", "system:image-pruner", "-z", "pruner")
	return func(title string, more ...string) (string, error) {
		return p.TryOC(append([]string{"adm", "prune", title, "--token=" + token, "--registry-url=https://" + p.direct()}, more...)...)
	}
}

func TestPushesContinueDuringPruning(t *testing.T) {
	p := newProject(t)
	prune := p.tryPruner()
	options := p.options(p.token)
	old := p.noise(2000)
	for _, image := range []v1.Image{old, p.noise(2000)} {
		if err := remote.Write(p.tag(p.direct(), "quiet"), image, options...); err != nil {
			t.Fatal(err)
		}
	}
	name, err := old.Digest()
	if err != nil {
		t.Fatal(err)
	}
	stop, pushes := make(chan struct{}), errgroup.Group{}
	streams := []string{"one", "two", "three"}
	for _, stream := range streams {
		pushes.Go(func() error {
			for {
				if err := remote.Write(p.tag(p.direct(), stream), p.noise(2000), options...); err != nil {
					return fmt.Errorf("push to stream %q while images are removed: %w", stream, err)
				}
				select {
				case <-stop:
					return nil
				default:
				}
			}
		})
	}
	removed, failures := "", []error{}
	for range 2 {
		out, err := prune("images", "--keep-tag-revisions=1", "--keep-younger-than=0", "--confirm")
		_, registryErr := prune("registry", "--confirm")
		removed, failures = removed+out, append(failures, err, registryErr)
	}
	close(stop)
	// Wait for the pushes before failing the test, because the end of the test would interrupt the
	// pushes.
	if err := errors.Join(append(failures, pushes.Wait())...); err != nil {
		t.Fatal(err)
	}
	if _, images, _ := strings.Cut(removed, "Deleting images from server"); !strings.Contains(images, name.String()) {
		t.Errorf("an unreferenced image was not removed:\n%s", removed)
	}
	for _, stream := range append(streams, "quiet") {
		if err := checkContent(p.tag(p.direct(), stream), options...); err != nil {
			t.Errorf("the newest image after removing older ones: %v", err)
		}
	}
}

func TestPushSurvivesRegistryRestart(t *testing.T) {
	p := newProject(t)
	dir, _ := image(t, "survivor")
	if err := p.push(dir, "app:v1", p.token); err != nil {
		t.Fatal(err)
	}
	rest := p.interrupt("app")
	p.WaitFor("successful retry of a client", func(context.Context) error { return p.push(dir, "app:v2", p.token) })
	for _, tag := range []string{"app:v1", "app:v2"} {
		if _, err := p.pull(tag, p.token); err != nil {
			t.Error(err)
		}
	}
	prune := p.pruner()
	if out := prune("registry", "--confirm"); strings.Contains(out, filepath.Base(rest)) {
		t.Errorf("an upload that may still continue was removed:\n%s", out)
	}
	yesterday := time.Now().Add(-25 * time.Hour)
	err := filepath.Walk(rest, func(file string, _ os.FileInfo, err error) error {
		if err == nil {
			err = os.Chtimes(file, yesterday, yesterday)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if out := prune("registry", "--confirm"); !strings.Contains(out, filepath.Base(rest)) {
		t.Errorf("the remains of the push are not in\n%s", out)
	}
	if _, err := os.Stat(rest); err == nil {
		t.Error("the remains of an interrupted push still exist")
	}
	if _, err := p.pull("app:v2", p.token); err != nil {
		t.Error(err)
	}
}

// interrupt starts an upload, kills the registry during the upload, and returns the upload's
// remaining directory.
func (p *project) interrupt(stream string) (rest string) {
	p.t.Helper()
	client := &http.Client{Transport: p.transport()}
	ask := func(method, address string, body io.Reader) (*http.Response, error) {
		request, err := http.NewRequestWithContext(p.t.Context(), method, address, body)
		if err != nil {
			p.t.Fatal(err)
		}
		request.SetBasicAuth("any", p.token)
		return client.Do(request)
	}
	started, err := ask(http.MethodPost, fmt.Sprintf("https://%s/v2/%s/%s/blobs/uploads/", p.direct(), p.Namespace, stream), nil)
	if err != nil {
		p.t.Fatal(err)
	}
	started.Body.Close()
	rest = p.Path("registry", "docker", "registry", "v2", "repositories", p.Namespace, stream, "_uploads", started.Header.Get("Docker-Upload-UUID"))
	reader, writer := io.Pipe()
	done := make(chan error, 1)
	go func() {
		response, err := ask(http.MethodPatch, started.Header.Get("Location"), reader)
		if err == nil {
			response.Body.Close()
		}
		reader.Close()
		done <- err
	}()
	go func() {
		for block := make([]byte, 64<<10); ; {
			if _, err := writer.Write(block); err != nil {
				return
			}
		}
	}()
	p.WaitFor("part of the upload on the disk", func(context.Context) error {
		file, err := os.Stat(filepath.Join(rest, "data"))
		if err == nil && file.Size() == 0 {
			err = fmt.Errorf("the file is empty")
		}
		return err
	})
	p.Kill("control-plane")
	if err := <-done; err == nil {
		p.t.Error("the interrupted upload succeeded")
	}
	return rest
}

func TestFullDiskFailsPushOnly(t *testing.T) {
	p := newProject(t)
	dir := p.Path("registry")
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=16m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	options := p.options(p.token)
	small, large := p.noise(1<<20), p.noise(24<<20)
	tag := p.tag(p.direct(), "app:small")
	if err := remote.Write(tag, small, options...); err != nil {
		t.Fatal(err)
	}
	noRetry := append(options, remote.WithRetryPredicate(func(error) bool { return false }), remote.WithRetryStatusCodes())
	if err := remote.Write(p.tag(p.direct(), "app:large"), large, noRetry...); err == nil || !strings.Contains(err.Error(), "the disk of the registry is full") {
		t.Errorf("push of an image that is too large: %v", err)
	}
	if _, err := p.try("copy", "--dest-cert-dir", "CERTIFICATES", "--dest-creds", "any:"+p.token, "docker-archive:"+archived(t, large), p.repository("app:larger")); err == nil ||
		!strings.Contains(err.Error(), "507") && !strings.Contains(err.Error(), "full") {
		t.Errorf("push of an image that is too large with skopeo: %v", err)
	}
	if err := checkContent(tag, options...); err != nil {
		t.Errorf("pull from a registry whose disk is full: %v", err)
	}
	p.WaitFor("release of the space of rejected pushes", func(context.Context) error {
		var disk unix.Statfs_t
		if err := unix.Statfs(dir, &disk); err != nil {
			return err
		}
		if free := disk.Bavail * uint64(disk.Bsize); free < 12<<20 {
			return fmt.Errorf("only %d bytes are free", free)
		}
		return nil
	})
	p.OC("get", "nodes") // the cluster must keep running

	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, make([]byte, 14<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(p.tag(p.direct(), "app:next"), p.noise(2<<20), noRetry...); err == nil {
		t.Error("a push to a full disk succeeds")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(p.tag(p.direct(), "app:next"), p.noise(2<<20), options...); err != nil {
		t.Errorf("after space was freed: %v", err)
	}
}

// reads is the number of clients that concurrently read a manifest. maxGrowth is the maximum
// amount, in KiB, by which these clients may increase the control plane's memory: half a MiB per
// client.
const reads, maxGrowth = 1000, 512 << 10

func TestThousandReadersOfManifest(t *testing.T) {
	p := newProject(t)
	tag := p.tag(p.direct(), "app:v1")
	if err := remote.Write(tag, p.noise(1000), p.options(p.token)...); err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: p.transport()}
	read := func() error {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+p.direct()+"/v2/"+p.Namespace+"/app/manifests/v1", nil)
		if err != nil {
			return err
		}
		request.SetBasicAuth("any", p.token)
		request.Header.Set("Accept", "application/vnd.oci.image.manifest.v1+json")
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %s %w", response.Status, body, err)
		}
		return nil
	}
	if err := read(); err != nil {
		t.Fatal(err)
	}
	before := p.peak()
	var all errgroup.Group
	for range reads {
		all.Go(read)
	}
	if err := all.Wait(); err != nil {
		t.Fatal(err)
	}
	if growth := p.peak() - before; growth > maxGrowth {
		t.Errorf("%d concurrent readers use %d KiB", reads, growth)
	}
}

// peak returns the control plane's peak memory usage, in KiB.
func (p *project) peak() int {
	p.t.Helper()
	pid := p.Status().PID("control-plane")
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		p.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	size, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		p.t.Fatal(err)
	}
	return size
}
