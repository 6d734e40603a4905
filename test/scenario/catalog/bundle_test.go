package catalog

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
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

	"github.com/slipway-platform/slipway/test/kit"
)

// bundleImage returns a bundle without a program. text is the content of its apb.yml.
func bundleImage(t *testing.T, text string) v1.Image {
	t.Helper()
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{
		Architecture: runtime.GOARCH, OS: "linux", RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{
			Labels: map[string]string{"com.redhat.apb.spec": base64.StdEncoding.EncodeToString([]byte(text)), "com.redhat.apb.runtime": "2"},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// pushBundle pushes a bundle without a program to the openshift project. text is the content of its
// apb.yml.
func pushBundle(t *testing.T, c *kit.Cluster, stream, text string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	image := bundleImage(t, text)
	reference, err := name.ParseReference(fmt.Sprintf("%s:5000/openshift/%s:latest", c.Address, stream))
	must(err)
	roots := x509.NewCertPool()
	authority, err := os.ReadFile(c.Path("pki", "ca.crt"))
	must(err)
	roots.AppendCertsFromPEM(authority)
	c.WaitFor("the push of "+stream, func(ctx context.Context) error {
		// Retry, because a new cluster creates the project's service accounts shortly after the
		// project.
		token, err := c.In("openshift").TryOC("create", "token", "builder")
		if err != nil {
			return err
		}
		return remote.Write(reference, image, remote.WithContext(ctx), remote.WithAuth(&authn.Basic{Username: "any", Password: strings.TrimSpace(token)}),
			remote.WithTransport(&http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}))
	})
	t.Cleanup(func() { c.In("openshift").OC("delete", "imagestream/"+stream) })
}
