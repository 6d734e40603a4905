package catalog

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/slipway-platform/slipway/test/kit"
)

// pushBundle puts a bundle into the project openshift: an image with a shell, oc and a script. text
// is its apb.yml.
func pushBundle(t *testing.T, c *kit.Cluster, stream, text, script string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	read := func(path string) []byte {
		t.Helper()
		content, err := os.ReadFile(path)
		must(err)
		return content
	}
	content := archive(t, map[string][]byte{"bin/busybox": read("/bin/busybox"), "bin/oc": read(c.RepositoryFile("bin", "oc")), "apb": []byte(script)})
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(content)), nil })
	must(err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Entrypoint: []string{"/bin/busybox", "sh", "/apb"}, Env: []string{"PATH=/bin"},
			Labels: map[string]string{"com.redhat.apb.spec": base64.StdEncoding.EncodeToString([]byte(text)), "com.redhat.apb.runtime": "2"},
		},
	})
	must(err)
	image, err = mutate.AppendLayers(image, layer)
	must(err)
	reference, err := name.ParseReference(fmt.Sprintf("%s:5000/openshift/%s:latest", c.Address, stream))
	must(err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read(c.Path("pki", "ca.crt")))
	c.WaitFor("the push of "+stream, func(ctx context.Context) error {
		// A new cluster gets the service accounts of the project a moment later.
		token, err := c.In("openshift").TryOC("create", "token", "builder")
		if err != nil {
			return err
		}
		return remote.Write(reference, image, remote.WithContext(ctx), remote.WithAuth(&authn.Basic{Username: "any", Password: strings.TrimSpace(token)}),
			remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}))
	})
	t.Cleanup(func() { c.In("openshift").OC("delete", "imagestream/"+stream) })
}

// archive returns a tar archive of executable files.
func archive(t *testing.T, files map[string][]byte) []byte {
	t.Helper()
	var content bytes.Buffer
	writer := tar.NewWriter(&content)
	for name, text := range files {
		if err := writer.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := writer.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return content.Bytes()
}
