package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// randomImage returns an image with random content for the given architecture.
func randomImage(t *testing.T, architecture string) v1.Image {
	t.Helper()
	const size, layers = 1 << 20, 2
	img, err := random.Image(size, layers)
	if err != nil {
		t.Fatal(err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	img, err = mutate.ConfigFile(img, config)
	if err != nil {
		t.Fatal(err)
	}
	return img
}

func writeDockerArchive(t *testing.T, path, tag string) {
	t.Helper()
	writeDockerArchiveFor(t, path, tag, runtime.GOARCH)
}

func writeDockerArchiveFor(t *testing.T, path, tag, architecture string) {
	t.Helper()
	ref, err := name.NewTag(tag)
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(path, ref, randomImage(t, architecture)); err != nil {
		t.Fatal(err)
	}
}

// writeLayout writes an OCI image layout as an archive. options can set the image's name.
func writeLayout(t *testing.T, path, architecture string, options ...layout.Option) {
	t.Helper()
	dir := t.TempDir()
	l, err := layout.Write(dir, emptyIndex(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.AppendImage(randomImage(t, architecture), options...); err != nil {
		t.Fatal(err)
	}
	var buffer bytes.Buffer
	archive := tar.NewWriter(&buffer)
	if err := archive.AddFS(os.DirFS(dir).(fs.ReadDirFS)); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, buffer.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}

func emptyIndex(t *testing.T) v1.ImageIndex {
	t.Helper()
	const size, layers, count = 1, 1, 0
	index, err := random.Index(size, layers, count)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// rewrite changes the content of the file.
func rewrite(t *testing.T, path string, change func([]byte) []byte) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func gzipped(data []byte) []byte {
	var buffer bytes.Buffer
	writer := gzip.NewWriter(&buffer)
	writer.Write(data)
	writer.Close()
	return buffer.Bytes()
}

func zstandard(data []byte) []byte {
	var buffer bytes.Buffer
	writer, _ := zstd.NewWriter(&buffer)
	writer.Write(data)
	writer.Close()
	return buffer.Bytes()
}

func withName(name string) layout.Option {
	return layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": name})
}

func TestLoadArchive(t *testing.T) {
	n := startNode(t)
	docker := func(tag string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { writeDockerArchive(t, path, tag) }
	}
	oci := func(options ...layout.Option) func(t *testing.T, path string) {
		return func(t *testing.T, path string) { writeLayout(t, path, runtime.GOARCH, options...) }
	}
	plain := func(data []byte) []byte { return data }
	for _, c := range []struct {
		name, file string
		write      func(t *testing.T, path string)
		compress   func([]byte) []byte
		want       string
	}{
		{"docker save", "a.tar", docker("example.com/team/app:1"), plain, "example.com/team/app:1"},
		{"docker save of a short name", "b.tar", docker("app"), plain, "docker.io/library/app:latest"},
		{"gzip", "c.tar.gz", docker("example.com/team/app:3"), gzipped, "example.com/team/app:3"},
		{"zstd", "d.tar.zst", docker("example.com/team/app:4"), zstandard, "example.com/team/app:4"},
		{"wrong suffix", "e.tar", docker("example.com/team/app:5"), gzipped, "example.com/team/app:5"},
		{"OCI layout with a name", "f.tar", oci(withName("example.com/team/app:6")), plain, "example.com/team/app:6"},
		{"OCI layout with a tag", "My App.oci.tar.gz", oci(withName("7")), gzipped, "localhost/my-app:7"},
		{"OCI layout without a name", "team_app.tar", oci(), plain, "localhost/team-app:latest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), c.file)
			c.write(t, path)
			rewrite(t, path, c.compress)
			var read, total int64
			got, err := n.store.LoadArchive(t.Context(), path, func(r, all int64) {
				if r < read {
					t.Errorf("the progress decreases from %d to %d", read, r)
				}
				read, total = r, all
			})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{c.want}, got); diff != "" {
				t.Error(diff)
			}
			if read == 0 || read > total {
				t.Errorf("the progress ends with %d of %d", read, total)
			}
			eventually.True(t, "kubelet to see it", func() bool { return n.image(t, c.want) != nil })
			if n.image(t, c.want).GetPinned() {
				t.Error("the image is pinned")
			}
		})
	}
}

func TestLoadArchiveExplainsUnusableArchives(t *testing.T) {
	n := startNode(t)
	foreign := "arm64"
	if runtime.GOARCH == foreign {
		foreign = "amd64"
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name string, data []byte) {
		if err := os.WriteFile(path(name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	half := func(data []byte) []byte { return data[:len(data)/2] }

	write("text.tar", bytes.Repeat([]byte("no archive\n"), 1000))
	write("empty.tar", nil)
	var other bytes.Buffer
	archive := tar.NewWriter(&other)
	if err := archive.WriteHeader(&tar.Header{Name: "README", Size: 2, Mode: 0o644}); err != nil {
		t.Fatal(err)
	}
	if _, err := archive.Write([]byte("hi")); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	write("other.tar", other.Bytes())
	writeDockerArchive(t, path("half.tar"), "example.com/app:half")
	rewrite(t, path("half.tar"), half)
	writeDockerArchive(t, path("half.tar.gz"), "example.com/app:half")
	rewrite(t, path("half.tar.gz"), func(data []byte) []byte { return half(gzipped(data)) })
	writeDockerArchive(t, path("half.tar.zst"), "example.com/app:half")
	rewrite(t, path("half.tar.zst"), func(data []byte) []byte { return half(zstandard(data)) })
	writeDockerArchive(t, path("bad.tar.gz"), "example.com/app:bad")
	rewrite(t, path("bad.tar.gz"), func(data []byte) []byte {
		data = gzipped(data)
		const trailer = 8 // length of the gzip trailer: checksum and size
		data[len(data)-trailer] ^= 0xff
		return data
	})
	writeDockerArchiveFor(t, path("foreign.tar"), "example.com/app:foreign", foreign)
	writeLayout(t, path("foreign-oci.tar"), foreign)

	for file, want := range map[string]string{
		"missing.tar":     "no such file",
		"text.tar":        "not an image archive",
		"empty.tar":       "not an image archive",
		"other.tar":       "an archive without images",
		"half.tar":        "truncated",
		"half.tar.gz":     "truncated",
		"half.tar.zst":    "truncated",
		"bad.tar.gz":      "checksum differs",
		"foreign.tar":     "it is for linux/" + foreign,
		"foreign-oci.tar": "it is for linux/" + foreign,
		"":                "not a file",
	} {
		_, err := n.store.LoadArchive(t.Context(), path(file), nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path(file)) {
			t.Errorf("%s: error %v, want %q in it", file, err, want)
		}
	}
	if images := list(t, n.store); len(images) > 0 {
		t.Errorf("images remain: %+v", images)
	}
}
