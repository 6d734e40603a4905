// Package s3 checks on a real cluster that the registry stores its images on a real S3 server
// (versitygw). It also checks that `oc image mirror` creates a bucket from which clients can pull.
// The tests build the S3 server first. They are separate from the scenarios, because no scenario
// needs the S3 server.
package s3

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"

	"github.com/slipway-platform/slipway/test/kit"
)

// registry is the registry of a cluster that stores its images in S3. It sends requests as a user
// with all permissions in the `default` project.
type registry struct {
	*kit.Cluster
	*server
	t      *testing.T
	client *http.Client
	token  string
}

func start(t *testing.T) *registry {
	t.Helper()
	return startWith(t, kit.Options{})
}

// startWith starts a cluster with the given options for its first host.
func startWith(t *testing.T, options kit.Options) *registry {
	t.Helper()
	path := filepath.Join(t.TempDir(), "registry.yml")
	options.Master = fmt.Sprintf("slipway: {registry: {configuration: %[1]q}, etcdSnapshots: {interval: 20s, keep: 2, configuration: %[1]q}}", path)
	c := kit.New(t, options)
	s := serve(t, c)
	if err := os.Rename(s.configuration(t), path); err != nil {
		t.Fatal(err)
	}
	c.Up()
	r := &registry{Cluster: c, server: s, t: t}
	authority, err := os.ReadFile(c.Path("pki", "ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	r.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}}
	t.Cleanup(r.client.CloseIdleConnections)
	c.OC("create", "serviceaccount", "pusher")
	c.OC("policy", "add-role-to-user", "admin", "-z", "pusher")
	c.OC("adm", "policy", "add-cluster-role-to-user", "system:image-pruner", "-z", "pusher")
	r.token = strings.TrimSpace(c.OC("create", "token", "pusher"))
	return r
}

func (r *registry) host() string { return r.Cluster.Address.String() + ":5000" }

func (r *registry) options() []remote.Option {
	return []remote.Option{remote.WithTransport(r.client.Transport), remote.WithAuth(&authn.Basic{Username: "any", Password: r.token})}
}

func (r *registry) tag(text string) name.Tag {
	r.t.Helper()
	tag, err := name.NewTag(r.host() + "/default/" + text)
	if err != nil {
		r.t.Fatal(err)
	}
	return tag
}

// push pushes an image with random data. Its layer is uploaded in several parts.
func (r *registry) push(name string) v1.Image {
	r.t.Helper()
	image, err := random.Image(24<<20, 1)
	if err == nil {
		err = remote.Write(r.tag(name), image, r.options()...)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return image
}

// checkContent returns an error unless the image can be pulled completely.
func (r *registry) checkContent(reference name.Reference) error {
	image, err := remote.Image(reference, r.options()...)
	if err != nil {
		return err
	}
	return validate.Image(image)
}

func (r *registry) prune(title string, more ...string) string {
	r.t.Helper()
	return r.OC(append([]string{"adm", "prune", title, "--token=" + r.token, "--registry-url=https://" + r.host(), "--confirm"}, more...)...)
}

func TestRegistryStoresImagesInS3(t *testing.T) {
	r := start(t)
	old, current := r.push("app:v1"), r.push("app:v1")
	if err := r.checkContent(r.tag("app:v1")); err != nil {
		t.Errorf("the last pushed image: %v", err)
	}

	// Mount a layer from another repository.
	layers, err := current.Layers()
	if err != nil {
		t.Fatal(err)
	}
	shared, err := layers[0].Digest()
	if err != nil {
		t.Fatal(err)
	}
	if status := r.post(fmt.Sprintf("/v2/default/other/blobs/uploads/?mount=%s&from=default/app", shared)); status != http.StatusCreated {
		t.Errorf("mount of a layer: %d", status)
	}

	// Unreferenced content must also be deleted from S3.
	digest, err := old.Digest()
	if err != nil {
		t.Fatal(err)
	}
	object := []string{"registry/docker/registry/v2/blobs/sha256", digest.Hex[:2], digest.Hex, "data"}
	if len(r.objects(t, object...)) != 1 {
		t.Fatal("the manifest of the first image is not in S3")
	}
	if out := r.prune("images", "--keep-tag-revisions=1", "--keep-younger-than=0"); !strings.Contains(out, digest.String()) {
		t.Errorf("pruning images prints\n%s", out)
	}
	if len(r.objects(t, object...)) != 0 {
		t.Error("the manifest of a removed image is still in S3")
	}
	if err := r.checkContent(r.tag("app:v1")); err != nil {
		t.Errorf("the remaining image: %v", err)
	}

	// Clients can repeat a push that fails because the registry was killed.
	r.interrupt("app")
	r.WaitFor("a push after the registry was killed", func(context.Context) error { return remote.Write(r.tag("app:v2"), old, r.options()...) })
	for _, tag := range []string{"app:v1", "app:v2"} {
		if err := r.checkContent(r.tag(tag)); err != nil {
			t.Errorf("%s after the registry was killed: %v", tag, err)
		}
	}
	r.prune("registry")

	r.mirror(current)
	r.WaitFor("snapshots of etcd in S3", func(context.Context) error {
		if stored := r.objects(t, "registry/etcd-snapshots/*/etcd-*.db"); len(stored) != 2 {
			return fmt.Errorf("there are %q", stored)
		}
		return nil
	})
	r.MustSlipway("etcd", "snapshot", "status", r.objects(t, "registry/etcd-snapshots/*/etcd-*.db")[0])
}

// post sends a POST request to the registry and returns the status.
func (r *registry) post(path string) int {
	r.t.Helper()
	response := r.ask(http.MethodPost, "https://"+r.host()+path, nil)
	if response == nil {
		r.t.Fatalf("%s: no response", path)
	}
	return response.StatusCode
}

// ask returns the response to a request, or nil if there is no response.
func (r *registry) ask(method, address string, body io.Reader) *http.Response {
	request, err := http.NewRequestWithContext(r.t.Context(), method, address, body)
	if err != nil {
		r.t.Error(err)
		return nil
	}
	request.SetBasicAuth("any", r.token)
	response, err := r.client.Do(request)
	if err != nil {
		return nil
	}
	response.Body.Close()
	return response
}

// interrupt kills the registry after it has sent some parts of an upload to S3.
func (r *registry) interrupt(stream string) {
	r.t.Helper()
	started := r.ask(http.MethodPost, fmt.Sprintf("https://%s/v2/default/%s/blobs/uploads/", r.host(), stream), nil)
	if started == nil || started.StatusCode != http.StatusAccepted {
		r.t.Fatal("an upload cannot be started")
	}
	reader, writer := io.Pipe()
	responses := make(chan *http.Response, 1)
	go func() {
		response := r.ask(http.MethodPatch, started.Header.Get("Location"), reader)
		reader.Close()
		responses <- response
	}()
	go func() {
		for block := make([]byte, 64<<10); ; {
			if _, err := writer.Write(block); err != nil {
				return
			}
		}
	}()
	r.WaitFor("parts of the upload in S3", func(context.Context) error {
		if len(r.objects(r.t, ".sgwtmp/multipart/*/*/[1-9]*")) == 0 {
			return fmt.Errorf("the bucket contains no parts")
		}
		return nil
	})
	r.Kill("control-plane")
	if response := <-responses; response != nil {
		r.t.Errorf("the upload ended with %s", response.Status)
	}
}

// mirror copies an image from the cluster's registry to a path in the bucket, from which clients
// can pull the image without a registry.
func (r *registry) mirror(image v1.Image) {
	r.t.Helper()
	r.t.Setenv("AWS_ACCESS_KEY_ID", accessKey)
	r.t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	credentials := filepath.Join(r.t.TempDir(), "config.json")
	auth := base64.StdEncoding.EncodeToString([]byte("any:" + r.token))
	if err := os.WriteFile(credentials, fmt.Appendf(nil, `{"auths": {%q: {"auth": %q}}}`, r.host(), auth), 0o600); err != nil {
		r.t.Fatal(err)
	}
	to := fmt.Sprintf("s3://%s/us-east-1/%s/mirrored/app:v1", r.server.address, bucket)
	digest, err := image.Digest()
	if err != nil {
		r.t.Fatal(err)
	}
	if out := r.OC("image", "mirror", "--insecure", "-a", credentials, r.tag("app:v1").Name(), to); !strings.Contains(out, digest.String()+" "+to) {
		r.t.Errorf("oc image mirror prints\n%s", out)
	}
	for _, object := range []string{"manifests/v1", "manifests/" + digest.String(), "blobs/sha256:*"} {
		if len(r.objects(r.t, "v2/mirrored/app", object)) == 0 {
			r.t.Errorf("object %s is missing", object)
		}
	}
}
