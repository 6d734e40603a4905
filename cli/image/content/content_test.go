package content

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// serve starts a registry and returns its host and port.
func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(slog.NewLogLogger(slog.DiscardHandler, slog.LevelError))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// oc runs `oc image` with the arguments. If the file `stdin` exists, mirror uses it as its standard
// input.
func oc(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	streams, in, out, errOut := genericiooptions.NewTestIOStreams()
	if len(args) > 0 && args[0] == "mirror" {
		in.WriteString(strings.Join(lines(t), "\n"))
	}
	util.BehaviorOnFatal(func(message string, _ int) { panic(errors.New(message)) })
	defer util.DefaultBehaviorOnFatal()
	defer func() {
		if problem := recover(); problem != nil {
			stdout, stderr, err = out.String(), errOut.String(), problem.(error)
		}
	}()
	command := New(streams)
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	err = command.ExecuteContext(t.Context())
	return out.String(), errOut.String(), err
}

// lines returns the lines of the stdin file in the working directory.
func lines(t *testing.T) []string {
	t.Helper()
	content, err := os.ReadFile("stdin")
	if err != nil {
		return nil
	}
	return strings.Split(string(content), "\n")
}

// entry is an entry in a layer. If kind is 0, the entry is a directory if its name ends with /, and
// a file otherwise.
type entry struct {
	name, content string
	kind          byte
	link          string
	mode          int64
}

// tarLayer returns a layer with the given entries. It does not validate them.
func tarLayer(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var buffer bytes.Buffer
	writer := tar.NewWriter(&buffer)
	for _, e := range entries {
		header := &tar.Header{Name: e.name, Typeflag: e.kind, Linkname: e.link, Mode: e.mode, Size: int64(len(e.content))}
		if e.kind == 0 {
			header.Typeflag = tar.TypeReg
			if strings.HasSuffix(e.name, "/") {
				header.Typeflag = tar.TypeDir
			}
		}
		if e.mode == 0 {
			header.Mode = 0o755
		}
		if err := writer.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write([]byte(e.content)); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// image returns an image with the given layers, for a platform such as linux/amd64.
func image(t *testing.T, platform string, layers ...[]byte) v1.Image {
	t.Helper()
	image := empty.Image
	for _, content := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
		if err == nil {
			image, err = mutate.AppendLayers(image, layer)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, _ = strings.Cut(platform, "/")
	config.Config = v1.Config{
		Entrypoint: []string{"/bin/app"}, Cmd: []string{"serve"}, Env: []string{"A=1", "B=2"}, User: "1001",
		Labels: map[string]string{"team": "shop"}, ExposedPorts: map[string]struct{}{"8080/tcp": {}},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

// newIndex returns an OCI image index with one image per platform.
func newIndex(t *testing.T, images map[string]v1.Image) v1.ImageIndex {
	t.Helper()
	index := v1.ImageIndex(empty.Index)
	for platform, image := range images {
		parsed, err := v1.ParsePlatform(platform)
		if err != nil {
			t.Fatal(err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: parsed}})
	}
	return index
}

// push pushes an image or an index and returns its digest.
func push(t *testing.T, reference string, artifact interface {
	remote.Taggable
	Digest() (v1.Hash, error)
}) string {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	if err == nil {
		err = remote.Push(parsed, artifact)
	}
	if err != nil {
		t.Fatal(err)
	}
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// digestOf returns the digest of a reference in a registry, or "" if the reference does not exist.
func digestOf(t *testing.T, reference string) string {
	t.Helper()
	parsed, err := name.ParseReference(reference)
	if err != nil {
		t.Fatal(err)
	}
	desc, err := remote.Head(parsed)
	if err != nil {
		return ""
	}
	return desc.Digest.String()
}

// write writes a file in directory and returns its path.
func write(t *testing.T, directory, file string, content []byte) string {
	t.Helper()
	path := filepath.Join(directory, file)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// fails checks that a command returns an error that contains want.
func fails(t *testing.T, want string, args ...string) {
	t.Helper()
	if out, _, err := oc(t, args...); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("oc image %s: %v, want %q; it prints %s", strings.Join(args, " "), err, want, out)
	}
}

func TestInfoPrintsImage(t *testing.T) {
	host := serve(t)
	digest := push(t, host+"/app:v1", image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "1"}), tarLayer(t, entry{name: "b", content: "2"})))
	out, _, err := oc(t, "info", host+"/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Name:          " + host + "/app:v1\n", "Digest:        " + digest + "\n", "Media Type:    application/vnd.docker.distribution.manifest.v2+json\n",
		"Created:       <unknown>\n", " in 2 layers\n", "OS:            linux\n", "Arch:          amd64\n", "Entrypoint:    /bin/app\n", "Command:       serve\n",
		"User:          1001\n", "Exposes Ports: 8080/tcp\n", "Environment:   A=1\n               B=2\n", "Labels:        team=shop\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	out, _, err = oc(t, "info", host+"/app@"+digest, "-o", "json")
	if err != nil || !strings.Contains(out, `"digest": "`+digest+`"`) || !strings.Contains(out, `"architecture": "amd64"`) {
		t.Errorf("json: %v\n%s", err, out)
	}
	fails(t, "does not have the image", "info", host+"/app:v2")
	fails(t, "must be json", "info", host+"/app:v1", "-o", "yaml")
	fails(t, "at least 1", "info", host+"/app:v1", "--max-per-registry=0")
	fails(t, "read registry credentials", "info", host+"/app:v1", "-a", "missing.json")
}

func TestInfoOfManifestListNeedsFilter(t *testing.T) {
	host := serve(t)
	arm := image(t, "linux/arm64", tarLayer(t, entry{name: "a", content: "arm"}))
	push(t, host+"/app:v1", newIndex(t, map[string]v1.Image{
		"linux/amd64": image(t, "linux/amd64", tarLayer(t, entry{name: "a", content: "amd"})), "linux/arm64": arm,
	}))
	digest, err := arm.Digest()
	if err != nil {
		t.Fatal(err)
	}
	fails(t, "linux/arm64  "+digest.String(), "info", host+"/app:v1")
	fails(t, "has no matching image", "info", host+"/app:v1", "--filter-by-os=windows")
	fails(t, "not a regular expression", "info", host+"/app:v1", "--filter-by-os=(")
	out, _, err := oc(t, "info", host+"/app:v1", "--filter-by-os=linux/arm64")
	if err != nil || !strings.Contains(out, digest.String()) || !strings.Contains(out, "Manifest List: sha256:") {
		t.Errorf("%v\n%s", err, out)
	}
}
