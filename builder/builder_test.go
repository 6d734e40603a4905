package builder

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"maps"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/builder/source"
	"github.com/slipway-platform/slipway/internal/payload"
)

// fixture contains the inputs of builds: a registry, and directories for secrets and config maps.
type fixture struct {
	t         *testing.T
	host      string
	runc      string
	secrets   string
	configs   string
	variables map[string]string
	cache     string
	labels    map[string]string // labels of pushed images
	work      string            // work directory; if empty, each build gets a new directory
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError))))
	t.Cleanup(server.Close)
	programs, err := payload.Unpack(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{
		t: t, host: strings.TrimPrefix(server.URL, "http://"), runc: programs.Runc, secrets: t.TempDir(), configs: t.TempDir(),
		variables: map[string]string{},
	}
}

// toBusybox is the content that marks a file as a link to busybox.
const toBusybox = "-> busybox"

// tarOf returns an archive of executable files and world-writable directories. Directory names end
// with a slash.
func tarOf(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o755, Size: int64(len(files[name]))}
		switch {
		case files[name] == toBusybox:
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, "busybox", 0
		case strings.HasSuffix(name, "/"):
			header.Typeflag, header.Mode = tar.TypeDir, 0o777
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Size == 0 {
			continue
		}
		if _, err := io.WriteString(writer, files[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// base pushes an image with a shell and the given files, and returns its reference.
func (s *fixture) base(name string, files map[string]string, config v1.Config) string {
	s.t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		s.t.Fatal(err)
	}
	all := map[string]string{"tmp/empty": "", "bin/busybox": string(busybox)}
	for _, applet := range []string{"sh", "cat", "cp", "mkdir", "id", "find", "tar", "echo", "false", "test", "chmod"} {
		all["bin/"+applet] = toBusybox
	}
	maps.Copy(all, files)
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(tarOf(s.t, all))), nil })
	if err != nil {
		s.t.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: config})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	reference := s.host + "/base/" + name + ":latest"
	if err := remote.Write(s.reference(reference), image); err != nil {
		s.t.Fatal(err)
	}
	return reference
}

func (s *fixture) reference(text string) name.Reference {
	s.t.Helper()
	reference, err := name.ParseReference(text)
	if err != nil {
		s.t.Fatal(err)
	}
	return reference
}

// build runs a build. It returns the last Build that the builder reported, and the log.
func (s *fixture) build(spec buildv1.CommonSpec, upload io.Reader) (*buildv1.Build, string, error) {
	s.t.Helper()
	if spec.Output.To == nil {
		spec.Output.To = &corev1.ObjectReference{Kind: "DockerImage", Name: s.host + "/team/app:latest"}
	}
	work := s.work
	if work == "" {
		work = s.t.TempDir()
	}
	var log bytes.Buffer
	var reported *buildv1.Build
	b := &Builder{
		Build:  &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "team", Labels: s.labels}, Spec: buildv1.BuildSpec{CommonSpec: spec}},
		Report: func(_ context.Context, build *buildv1.Build) error { reported = build.DeepCopy(); return nil },
		Work:   work, Cache: s.cache, Secrets: s.secrets, ConfigMaps: s.configs, Runc: s.runc, Limit: source.NewLimit(), Git: source.Git{Forbidden: source.LocalAddress},
		Variable: func(name string) string { return s.variables[name] }, In: upload, Out: &log,
	}
	err := b.Run(context.WithoutCancel(s.t.Context()))
	return reported, log.String(), err
}

// pushedImage is an image and the files of its layers.
type pushedImage struct {
	*v1.ConfigFile
	digest string
	layers int
	files  map[string]string
}

// mustBuild runs a build and returns the image.
func (s *fixture) mustBuild(spec buildv1.CommonSpec, upload io.Reader) (pushedImage, string) {
	s.t.Helper()
	build, log, err := s.build(spec, upload)
	if err != nil {
		s.t.Fatalf("%v\n%s", err, log)
	}
	image, err := remote.Image(s.reference(s.host + "/team/app:latest"))
	if err != nil {
		s.t.Fatal(err)
	}
	got := pushedImage{files: map[string]string{}}
	if got.ConfigFile, err = image.ConfigFile(); err != nil {
		s.t.Fatal(err)
	}
	digest, err := image.Digest()
	if err != nil {
		s.t.Fatal(err)
	}
	got.digest = digest.String()
	if build.Status.Output.To == nil || build.Status.Output.To.ImageDigest != got.digest {
		s.t.Errorf("reported image is %+v, pushed image is %s", build.Status.Output.To, got.digest)
	}
	layers, err := image.Layers()
	if err != nil {
		s.t.Fatal(err)
	}
	got.layers = len(layers)
	content := mutate.Extract(image)
	defer content.Close()
	for archive := tar.NewReader(content); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return got, log
		}
		if err != nil {
			s.t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			s.t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg && !strings.HasPrefix(header.Name, "bin/") {
			got.files[path.Clean(header.Name)] = string(data)
		}
	}
}

// binary returns the spec of a build that uses uploaded source.
func binary(strategy buildv1.BuildStrategy) buildv1.CommonSpec {
	return buildv1.CommonSpec{Source: buildv1.BuildSource{Binary: &buildv1.BinaryBuildSource{}}, Strategy: strategy}
}

// write writes the files of a mounted secret or config map.
func (s *fixture) write(dir string, files map[string]string) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
}
