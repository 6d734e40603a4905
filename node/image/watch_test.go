package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/containerd/containerd/v2/core/content"
	"github.com/containerd/containerd/v2/core/leases"
	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/diskspace"
	"github.com/slipway-platform/slipway/internal/eventually"
)

// pullFor pulls an image for a pod in the given namespace.
func (f *pullFixture) pullFor(ctx context.Context, namespace, image string) error {
	_, err := f.client.PullImage(ctx, &criapi.PullImageRequest{
		Image:         &criapi.ImageSpec{Image: image},
		SandboxConfig: &criapi.PodSandboxConfig{Metadata: &criapi.PodSandboxMetadata{Namespace: namespace}},
	})
	return err
}

// trickle sends a byte from time to time until the client disconnects or the test ends.
func trickle(w http.ResponseWriter, r *http.Request, test context.Context) {
	for r.Context().Err() == nil && test.Err() == nil {
		_, _ = w.Write([]byte(" "))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-test.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestSlowRegistryDoesNotDelayOtherPulls(t *testing.T) {
	slow, fast := newBlobRegistry(t), newBlobRegistry(t)
	image := slow.newImage(t, "file")
	slow.publish(t, image)
	fast.publish(t, fast.newImage(t, "file"))
	waiting := make(chan struct{}, 2*maxNamespacePulls)
	slow.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, image.layers[0].Digest.String()) {
			return false
		}
		waiting <- struct{}{}
		trickle(w, r, t.Context())
		return true
	}
	f := newPullFixture(t, slow.host, fast.host)
	results := make(chan error, maxNamespacePulls)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range maxNamespacePulls {
		go func() { results <- f.pullFor(ctx, "evil", fmt.Sprintf("%s/app-%d:1", slow.host, i)) }()
	}
	<-waiting // the registry's other pulls wait for this layer
	if err := f.pullFor(t.Context(), "shop", fast.host+"/team/app:1"); err != nil {
		t.Errorf("a pull from another registry: %v", err)
	}
	cancel()
	for range maxNamespacePulls {
		if err := <-results; status.Code(err) != codes.Canceled {
			t.Errorf("a canceled pull: %v", err)
		}
	}
}

func TestSlowPullTimesOut(t *testing.T) {
	registry := newBlobRegistry(t)
	image := registry.newImage(t, "file")
	manifest := registry.publish(t, image)
	var slow digest.Digest
	registry.intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || !strings.HasSuffix(r.URL.Path, slow.String()) {
			return false
		}
		trickle(w, r, t.Context())
		return true
	}
	f := newPullFixture(t, registry.host)
	f.restart(t, func(s *Service) { s.minRate = rate{bytes: 1 << 20, period: 300 * time.Millisecond} })
	for title, name := range map[string]digest.Digest{
		"manifest": manifest.Digest, "configuration": image.manifest.Config.Digest, "layer": image.layers[0].Digest,
	} {
		slow = name
		if err := f.pullFor(t.Context(), "evil", registry.host+"/team/app:1"); status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "512 KiB a minute") {
			t.Errorf("a slow %s: %v", title, err)
		}
	}
	slow = "none"
	// Restore the default rate, because the test machine can also be slow.
	f.restart(t, func(s *Service) { s.minRate = rate{} })
	if err := f.pullFor(t.Context(), "evil", registry.host+"/team/app:1"); err != nil {
		t.Errorf("after slow pulls: %v", err)
	}
}

func TestInterruptedPullLeavesNothing(t *testing.T) {
	registry := newBlobRegistry(t)
	image := registry.newImage(t, "file")
	registry.publish(t, image)
	f := newPullFixture(t, registry.host)
	c, err := f.store.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	// Create the lease of a process that was killed during a pull.
	lease, err := c.LeasesService().Create(t.Context(), leases.WithRandomID(), leases.WithExpiration(time.Hour), leases.WithLabel(labelPull, "killed"))
	if err != nil {
		t.Fatal(err)
	}
	layer := image.layers[0]
	err = content.WriteBlob(leases.WithLease(t.Context(), lease.ID), c.ContentStore(), "killed", bytes.NewReader(registry.blobs[layer.Digest].data), layer)
	if err != nil {
		t.Fatal(err)
	}
	if blobs, count := f.contents(t); len(blobs) != 1 || count != 1 {
		t.Fatalf("blobs %v, %d leases", blobs, count)
	}
	f.restart(t, func(*Service) {})
	eventually.True(t, "removal of the interrupted pull", func() bool {
		blobs, count := f.contents(t)
		return len(blobs) == 0 && count == 0
	})
}

// addLayer adds a gzip-compressed layer whose archive is written by write. It does not keep the
// uncompressed data.
func (r *blobRegistry) addLayer(t *testing.T, image *fakeImage, write func(archive *tar.Writer) error) {
	t.Helper()
	var compressed bytes.Buffer
	packer, sum := gzip.NewWriter(&compressed), sha256.New()
	archive := tar.NewWriter(io.MultiWriter(packer, sum))
	if err := errors.Join(write(archive), archive.Close(), packer.Close()); err != nil {
		t.Fatal(err)
	}
	image.config.RootFS.DiffIDs = append(image.config.RootFS.DiffIDs, digest.NewDigestFromEncoded(digest.SHA256, hex.EncodeToString(sum.Sum(nil))))
	image.layers = append(image.layers, r.add(ocispec.MediaTypeImageLayerGzip, compressed.Bytes()))
}

func TestUnpackingIsLimited(t *testing.T) {
	registry := newBlobRegistry(t)
	f := newPullFixture(t, registry.host)
	image := registry.newImage(t, "file")
	registry.addLayer(t, image, func(archive *tar.Writer) error {
		for range 150_000 {
			if err := archive.WriteHeader(&tar.Header{Name: "again/", Typeflag: tar.TypeDir, Mode: 0o755}); err != nil {
				return err
			}
		}
		return nil
	})
	registry.publish(t, image)
	for want, change := range map[string]func(*Service){
		"too much memory":              func(s *Service) { s.maxGrowth, s.minUnpackTime = 16<<20, time.Hour },
		"could not be unpacked within": func(s *Service) { s.maxGrowth, s.minUnpackTime = 1<<40, time.Nanosecond },
	} {
		f.restart(t, change)
		if _, err := f.pull(t, registry.host+"/team/app:1"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if blobs, leases := f.contents(t); len(blobs) > 0 || leases > 0 {
		t.Errorf("rejected layers leave the blobs %v and %d leases", blobs, leases)
	}
}

// zeros is a reader that returns zeros.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// mountDisk mounts a small disk for the test.
func mountDisk(t *testing.T, dir string, bytes int64) {
	t.Helper()
	image := filepath.Join(t.TempDir(), "disk")
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, bytes), os.MkdirAll(dir, 0o700)); err != nil {
		t.Fatal(err)
	}
	const inodes = "20000"
	for _, command := range [][]string{{"mkfs.ext4", "-q", "-m", "0", "-N", inodes, image}, {"mount", "-o", "loop", image, dir}} {
		if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, output)
		}
	}
}

func TestImageCannotFillDisk(t *testing.T) {
	const size = 256 << 20
	registry := newBlobRegistry(t)
	f := newPullFixtureOn(t, func(root string) { mountDisk(t, root, size) }, registry.host)
	f.restart(t, func(s *Service) { s.Reserve = diskspace.Reserve{Share: 0.6, Inodes: 0.5} })
	free := func() (bytes, inodes uint64) {
		var disk unix.Statfs_t
		if err := unix.Statfs(f.root, &disk); err != nil {
			t.Fatal(err)
		}
		return disk.Bavail * uint64(disk.Bsize), disk.Ffree
	}
	bytesBefore, inodesBefore := free()
	for name, write := range map[string]func(archive *tar.Writer) error{
		"bytes": func(archive *tar.Writer) error {
			if err := archive.WriteHeader(&tar.Header{Name: "zeros", Mode: 0o644, Size: size}); err != nil {
				return err
			}
			_, err := io.Copy(archive, io.LimitReader(zeros{}, size))
			return err
		},
		"inodes": func(archive *tar.Writer) error {
			for i := range 20_000 {
				if err := archive.WriteHeader(&tar.Header{Name: fmt.Sprint(i), Mode: 0o644}); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		image := registry.newImage(t, "file")
		registry.addLayer(t, image, write)
		registry.publish(t, image)
		_, err := f.pull(t, registry.host+"/team/app:1")
		if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "does not fit on the node's disk") {
			t.Errorf("%s: %v", name, err)
		}
		eventually.True(t, "free space on the disk", func() bool {
			blobs, leases := f.contents(t)
			bytes, inodes := free()
			const other = 10 << 20 // size of containerd's databases
			return len(blobs) == 0 && leases == 0 && bytes+other > bytesBefore && inodes+100 > inodesBefore
		})
	}
	image := registry.newImage(t, "file")
	registry.publish(t, image)
	if _, err := f.pull(t, registry.host+"/team/app:1"); err != nil {
		t.Errorf("an image that fits: %v", err)
	}
	f.restart(t, func(s *Service) { s.Reserve = diskspace.Reserve{Share: 0.99} })
	if _, err := f.pull(t, registry.host+"/team/app:1"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a pull on a full disk: %v", err)
	}
}
