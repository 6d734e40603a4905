// Package registry tests the cluster's registry on a real cluster. Third-party clients push images
// to it and pull images from it, image streams are updated, and pods run the images that their
// project has pushed or imported. Sources: OpenShift Container Platform 3.9 Architecture, the
// integrated registry and image streams; OpenShift 3.11 Cluster Administration, chapters 11, 12, 14
// and 19.
package registry

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) {
	// Allow imports from the network of the cluster's host, which contains the tests' registries.
	// Only an administrator can allow these imports.
	kit.MainWith(m, kit.Options{Master: "routingConfig: {subdomain: apps.example.com}\nslipway: {registry: {signatureDirectory: stores}, outbound: {allowedNetworks: [198.18.0.0/15]}}",
		Node: "slipway: {signaturePolicy: policy.json}"})
}

// project is the test's project, with the token of an account that can push to it.
type project struct {
	*kit.Cluster
	t     *testing.T
	token string
}

func newProject(t *testing.T) *project {
	t.Helper()
	c := kit.Shared(t)
	p := &project{c, t, ""}
	p.token = p.account("pusher", "edit")
	return p
}

// account creates a service account with the given role in the project, and returns its token.
func (p *project) account(name, role string) string {
	p.t.Helper()
	p.OC("create", "serviceaccount", name)
	if role != "" {
		p.OC("policy", "add-role-to-user", role, "-z", name)
	}
	return strings.TrimSpace(p.OC("create", "token", name))
}

// repository returns the reference of one of the project's streams, for clients outside the
// cluster.
func (p *project) repository(stream string) string {
	return fmt.Sprintf("docker://%s:5000/%s/%s", p.Address, p.Namespace, stream)
}

// listen listens on this machine's address in the cluster's network.
func listen(p *project) (net.Listener, error) {
	return net.Listen("tcp", net.JoinHostPort(p.Gateway.String(), "0"))
}

// try runs skopeo, a third-party client, and returns its output.
func (p *project) try(args ...string) (string, error) {
	p.t.Helper()
	certificates := p.t.TempDir()
	authority, err := os.ReadFile(p.Path("pki", "ca.crt"))
	if err == nil {
		err = os.WriteFile(filepath.Join(certificates, "ca.crt"), authority, 0o600)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "CERTIFICATES", certificates)
	}
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, "skopeo", append([]string{"--insecure-policy"}, args...)...)
	command.Env = append(os.Environ(), "HOME="+certificates)
	output, err := command.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("skopeo %s: %w: %s", args[0], err, output)
	}
	return string(output), err
}

// push copies an image from a directory to a stream, and authenticates with a token.
func (p *project) push(dir, to, token string) error {
	p.t.Helper()
	_, err := p.try("copy", "--dest-cert-dir", "CERTIFICATES", "--dest-creds", "any:"+token, "oci:"+dir, p.repository(to))
	return err
}

// pull copies an image from a stream to a new directory, and authenticates with a token.
func (p *project) pull(from, token string) (dir string, err error) {
	p.t.Helper()
	dir = filepath.Join(p.t.TempDir(), "image")
	_, err = p.try("copy", "--src-cert-dir", "CERTIFICATES", "--src-creds", "any:"+token, p.repository(from), "oci:"+dir)
	return dir, err
}

// image creates an image whose container prints a word and then sleeps. dir is a directory that
// contains the image in the OCI layout.
func image(t *testing.T, word string) (dir string, image v1.Image) {
	t.Helper()
	busybox, err := os.ReadFile("/bin/busybox")
	if err != nil {
		t.Fatal(err)
	}
	content := archive(t, map[string]string{"bin/busybox": string(busybox), "word": word})
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS = "amd64", "linux"
	file.Config = v1.Config{
		Entrypoint: []string{"/bin/busybox", "sh", "-c", "read w < /word; echo $w; exec /bin/busybox sleep 1000000"},
		Env:        []string{"WORD=" + word}, Labels: map[string]string{"word": word},
	}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	path, err := layout.Write(dir, empty.Index)
	if err == nil {
		err = path.AppendImage(image)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir, image
}
