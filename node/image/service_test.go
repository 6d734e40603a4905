package image

import (
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/outbound"
)

// insideSecret is a response that the author of a pod must never be able to read.
const insideSecret = "inside-secret"

// pullFixture is a service in front of a real containerd.
type pullFixture struct {
	*node
	service   *Service
	component *componenttest.Component
	client    criapi.ImageServiceClient
}

// newPullFixture starts a service that may connect to the given hosts.
func newPullFixture(t *testing.T, allowed ...string) *pullFixture {
	t.Helper()
	return newPullFixtureOn(t, func(string) {}, allowed...)
}

// newPullFixtureOn starts a service after prepare has prepared containerd's directory.
func newPullFixtureOn(t *testing.T, prepare func(root string), allowed ...string) *pullFixture {
	t.Helper()
	n := startNodeOn(t, prepare)
	f := &pullFixture{node: n, service: &Service{
		Store: n.store, Socket: filepath.Join(filepath.Dir(n.store.Socket), "images.sock"), RegistryConfigDir: t.TempDir(),
		Dialer: outbound.New(outbound.Policy{AllowedHosts: allowed}), Directory: n.root,
	}}
	f.start(t)
	return f
}

// restart applies a change to the service and restarts it.
func (f *pullFixture) restart(t *testing.T, change func(*Service)) {
	t.Helper()
	f.component.Stop()
	change(f.service)
	f.start(t)
}

func (f *pullFixture) start(t *testing.T) {
	t.Helper()
	f.component = componenttest.Run(t, f.service.Run)
	connection, err := grpc.NewClient("unix://"+f.service.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	f.client = criapi.NewImageServiceClient(connection)
}

func (f *pullFixture) pull(t *testing.T, image string) (id string, err error) {
	t.Helper()
	resp, err := f.client.PullImage(t.Context(), &criapi.PullImageRequest{Image: &criapi.ImageSpec{Image: image}})
	return resp.GetImageRef(), err
}

// mirror writes a registry's hosts.toml with a single server, which uses HTTP.
func (f *pullFixture) mirror(t *testing.T, registry, server string) {
	t.Helper()
	dir := filepath.Join(f.service.RegistryConfigDir, registry)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	content := fmt.Sprintf("[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\n", "http://"+server)
	if err := os.WriteFile(filepath.Join(dir, "hosts.toml"), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// httpServer serves HTTP on the loopback interface and returns its host:port.
func httpServer(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

// realRegistry serves an image as team/app:1, and returns the registry's host:port and the image's
// digest.
func realRegistry(t *testing.T) (host, digest string) {
	t.Helper()
	host = httpServer(t, registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	ref, err := name.ParseReference(host+"/team/app:1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	image := randomImage(t, runtime.GOARCH)
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	sum, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return host, sum.String()
}

func TestServicePullsFromServersOfAdministrator(t *testing.T) {
	host, digest := realRegistry(t)
	f := newPullFixture(t, host)
	f.mirror(t, "registry.example.com", host)
	for _, image := range []string{host + "/team/app:1", host + "/team/app@" + digest, "registry.example.com/team/app:1"} {
		id, err := f.pull(t, image)
		if err != nil {
			t.Errorf("%s: %v", image, err)
			continue
		}
		if existing := f.image(t, image); existing.GetId() != id || !strings.HasPrefix(id, "sha256:") {
			t.Errorf("%s: pulled %q, containerd has %+v", image, id, existing)
		}
	}
	image := f.image(t, host+"/team/app:1")
	if len(image.GetRepoTags()) == 0 || len(image.GetRepoDigests()) == 0 || image.GetSize() == 0 {
		t.Errorf("image %+v", image)
	}
	if list, err := f.client.ListImages(t.Context(), &criapi.ListImagesRequest{}); err != nil || len(list.GetImages()) != 1 {
		t.Errorf("images %v, %v", list.GetImages(), err)
	}
	if _, err := f.client.RemoveImage(t.Context(), &criapi.RemoveImageRequest{Image: &criapi.ImageSpec{Image: image.GetId()}}); err != nil {
		t.Error(err)
	}
	if status, err := f.client.ImageStatus(t.Context(), &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: host + "/team/app:1"}}); err != nil || status.GetImage() != nil {
		t.Errorf("after the removal of the image: %v, %v", status.GetImage(), err)
	}
	if _, err := f.pull(t, host+"/team/app:2"); status.Code(err) != codes.NotFound {
		t.Errorf("pull of a missing tag: %v", err)
	}
}

func TestPullsForPodsCannotReachServersOfHost(t *testing.T) {
	var requests atomic.Int32
	inside := httpServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, insideSecret, http.StatusTeapot)
	}))
	_, port, _ := strings.Cut(inside, ":")
	hostile := map[string]http.HandlerFunc{
		"redirects": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://"+inside+r.URL.Path, http.StatusTemporaryRedirect)
		},
		"requires a token from": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm="http://%s/token",service="s"`, inside))
			w.WriteHeader(http.StatusUnauthorized)
		},
		"reports": func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, insideSecret, http.StatusInternalServerError)
		},
		"lists": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", insideSecret)
			fmt.Fprint(w, insideSecret)
		},
	}
	rejected := []string{inside + "/x", "localhost:" + port + "/x", "127.8.8.8:" + port + "/x:1", "0.0.0.0:" + port + "/x", "169.254.169.254/x", "[::1]:" + port + "/x"}
	var allowed, peers []string
	for does, handle := range hostile {
		host := httpServer(t, handle)
		allowed = append(allowed, host)
		if does == "redirects" || does == "requires a token from" {
			rejected = append(rejected, host+"/team/app:1")
		} else {
			peers = append(peers, host+"/team/app:1")
		}
	}
	f := newPullFixture(t, allowed...)
	// After the mirror, the registry itself is tried.
	f.mirror(t, "_default", httpServer(t, http.NotFoundHandler()))
	for _, image := range append(peers, rejected...) {
		_, err := f.pull(t, image)
		if err == nil || strings.Contains(err.Error(), insideSecret) || strings.Contains(err.Error(), "teapot") {
			t.Errorf("%s: %v", image, err)
		}
	}
	if err := os.RemoveAll(filepath.Join(f.service.RegistryConfigDir, "_default")); err != nil {
		t.Fatal(err)
	}
	for _, image := range rejected {
		if _, err := f.pull(t, image); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "slipway.outbound") {
			t.Errorf("%s: %v, want a rejection", image, err)
		}
	}
	if n := requests.Load(); n > 0 {
		t.Errorf("the server received %d requests", n)
	}
}

func TestCredentialsAreSentOnlyToTheirServer(t *testing.T) {
	basic := base64.StdEncoding.EncodeToString([]byte("bob:secret:1"))
	for name, tt := range map[string]struct {
		auth         *criapi.AuthConfig
		user, secret string
	}{
		"none":                      {nil, "", ""},
		"user and password":         {&criapi.AuthConfig{Username: "bob", Password: "secret"}, "bob", "secret"},
		"token":                     {&criapi.AuthConfig{IdentityToken: "token"}, "", "token"},
		"encoded":                   {&criapi.AuthConfig{Auth: basic}, "bob", "secret:1"},
		"of this server":            {&criapi.AuthConfig{Username: "bob", Password: "secret", ServerAddress: "registry.example.com:5000"}, "bob", "secret"},
		"of this server, with path": {&criapi.AuthConfig{Username: "bob", Password: "secret", ServerAddress: "https://registry.example.com:5000/v1/"}, "bob", "secret"},
		"of another server":         {&criapi.AuthConfig{Username: "bob", Password: "secret", ServerAddress: "https://other.example.com"}, "", ""},
	} {
		user, secret, err := credentials(tt.auth)("registry.example.com:5000")
		if user != tt.user || secret != tt.secret || err != nil {
			t.Errorf("%s: %q, %q, %v", name, user, secret, err)
		}
	}
	if _, _, err := credentials(&criapi.AuthConfig{Auth: "bob"})("registry.example.com"); err == nil {
		t.Error("credentials that are not base64 are accepted")
	}
}
