package registry

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
	"golang.org/x/crypto/bcrypt"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
)

// configured writes a configuration to a file and reads the file with ReadConfiguration.
func configured(t *testing.T, content string) (*configuration.Configuration, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return ReadConfiguration(file)
}

func TestUnsupportedConfigurationsAreRejected(t *testing.T) {
	for content, want := range map[string]string{
		"version: 9.9": "version",
		"version: 0.1\nstorage: {azure: {container: a}}":                                                         `storage "azure" is not supported; use filesystem or s3`,
		"version: 0.1\nstorage: {filesystem: {}}":                                                                "needs rootdirectory",
		"version: 0.1\nstorage: {filesystem: {rootdirectory: /a}}\nauth: {silly: {realm: a}}":                    `auth "silly" is not supported`,
		"version: 0.1\nstorage: {filesystem: {rootdirectory: /a}}\nauth: {htpasswd: {realm: a, path: /nowhere}}": "slipway htpasswd --file /nowhere set USER",
		"version: 0.1\nstorage: {filesystem: {rootdirectory: /a}}\nhttp: {tls: {certificate: /a}}":               "must be set together",
		"version: 0.1\nstorage: {filesystem: {rootdirectory: /a}}\nhttp: {tls: {clientcas: [/a]}}":               "clientcas needs",
		"version: 0.1\nstorage: {filesystem: {rootdirectory: /a}}\nproxy: {remoteurl: https://a.example.com}":    "proxy is not supported",
	} {
		if _, err := configured(t, content); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", content, err, want)
		}
	}
	if _, err := ReadConfiguration("/nowhere"); err == nil || !strings.Contains(err.Error(), "read registry configuration") {
		t.Errorf("no file: %v", err)
	}
	settings, err := configured(t, "version: 0.1\nstorage: {filesystem: {rootdirectory: /proc/nowhere}}\nhttp: {addr: 'localhost:0'}")
	if err != nil {
		t.Fatal(err)
	}
	if err := (&Standalone{settings}).Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "create registry directory") {
		t.Errorf("storage that cannot be created: %v", err)
	}
}

func TestInsecureConfigurationsAreReported(t *testing.T) {
	users := configuration.Auth{"htpasswd": {}}
	encrypted := configuration.HTTP{TLS: configuration.TLS{Certificate: "a", Key: "b"}}
	scheme := encrypted
	scheme.TLS.ClientCAs = []string{"c"}
	request := scheme
	request.TLS.ClientAuth = configuration.ClientAuthVerifyClientCertIfGiven
	for name, tt := range map[string]struct {
		settings configuration.Configuration
		want     string
	}{
		"users and TLS":                   {configuration.Configuration{Auth: users, HTTP: encrypted}, ""},
		"users on a socket":               {configuration.Configuration{Auth: users, HTTP: configuration.HTTP{Net: "unix"}}, ""},
		"users without TLS":               {configuration.Configuration{Auth: users}, "without encryption"},
		"no users":                        {configuration.Configuration{HTTP: encrypted}, "no users are configured"},
		"no users, set explicitly":        {configuration.Configuration{HTTP: encrypted, Auth: configuration.Auth{"none": {}}}, "no users are configured"},
		"clients' certificates":           {configuration.Configuration{HTTP: scheme}, ""},
		"clients' certificates, optional": {configuration.Configuration{HTTP: request}, "no users are configured"},
	} {
		if got := risk(&tt.settings); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestUsersOfHTPasswdFilePushAndPull(t *testing.T) {
	dir := t.TempDir()
	hash, err := bcrypt.GenerateFromPassword([]byte("secret"), bcrypt.MinCost)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "users"), fmt.Appendf(nil, "ann:%s\n", hash), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	settings, err := configured(t, fmt.Sprintf(`
version: 0.1
storage: {filesystem: {rootdirectory: %[1]s/images}, delete: {enabled: true}}
auth: {htpasswd: {realm: registry, path: %[1]s/users}}
`, dir))
	if err != nil {
		t.Fatal(err)
	}
	g := testRegistryWith(t, settings)
	option := remote.WithAuth(&authn.Basic{Username: "ann", Password: "secret"})
	image := g.image(g.layer())
	if err := remote.Write(g.tag("any/deep/name"), image); err == nil {
		t.Error("a client without credentials can push")
	}
	if err := remote.Write(g.tag("any/deep/name"), image, option); err != nil {
		t.Fatal(err)
	}
	id := digestOf(t, image)
	for path, want := range map[string]int{
		"/": http.StatusOK, "/v2/any/deep/name/referrers/" + id: http.StatusUnauthorized, "/v2/any/deep/name/manifests/latest": http.StatusUnauthorized,
		"/v2/../name/referrers/" + id: http.StatusBadRequest,
	} {
		if got := g.send(http.MethodGet, path, http.Header{}, nil); got.StatusCode != want {
			t.Errorf("%s without credentials: %s, want %d", path, got.Status, want)
		}
	}
	if resp := g.send(http.MethodPut, "/v2/any/deep/name/manifests/other", http.Header{}, []byte("{}")); resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("a manifest without credentials: %s", resp.Status)
	}
	if _, err := remote.Referrers(g.digest("any/deep/name", id), option); err != nil {
		t.Error(err)
	}
}

func TestReadStorageOfClusterRegistry(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config.yml")
	if err := os.WriteFile(file, []byte("version: 0.1\nstorage: {filesystem: {rootdirectory: /file}}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, file string
		readOnly   bool
		want       configuration.Storage
	}{
		{"directory", "", false, configuration.Storage{"filesystem": {"rootdirectory": "/dir"}}},
		{"read-only directory", "", true, configuration.Storage{"filesystem": {"rootdirectory": "/dir"}, "maintenance": rejectPushes()}},
		{"configuration file", file, false, configuration.Storage{"filesystem": {"rootdirectory": "/file"}}},
		{"read-only configuration file", file, true, configuration.Storage{"filesystem": {"rootdirectory": "/file"}, "maintenance": rejectPushes()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ReadStorage("/dir", tt.file, tt.readOnly)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("storage (-want +got):\n%s", diff)
			}
		})
	}
	if _, err := ReadStorage("/dir", "/nowhere", false); err == nil {
		t.Error("a missing configuration file is accepted")
	}
}

func TestReadOnlyRegistryServesPulls(t *testing.T) {
	dir := t.TempDir()
	g := testRegistryOn(t, Directory(dir, false))
	id := g.push("shop/app", g.layer())
	settings, err := configured(t, "version: 0.1\nstorage: {filesystem: {rootdirectory: "+dir+"}, maintenance: {readonly: {enabled: true}}}")
	if err != nil {
		t.Fatal(err)
	}
	for name, storage := range map[string]configuration.Storage{"by Slipway's setting": Directory(dir, true), "by distribution's": settings.Storage} {
		frozen := testRegistryOn(t, storage)
		if !frozen.has("shop/app", id) {
			t.Errorf("read-only %s: the image cannot be pulled", name)
		}
		image := frozen.image(frozen.layer())
		if err := remote.Write(frozen.tag("shop/app"), image); err == nil {
			t.Errorf("read-only %s: a push succeeds", name)
		}
		if err := remote.Delete(frozen.digest("shop/app", id)); err == nil {
			t.Errorf("read-only %s: an image is removed", name)
		}
	}
	w := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodPut, "/v2/shop/app/manifests/other", nil)
	testRegistryOn(t, Directory(dir, true)).putManifest(w, request, "shop/app", "other", []byte(`{"subject":{"digest":"`+id+`"}}`))
	if referrers := g.referring("shop/app", id); w.Code != http.StatusMethodNotAllowed || len(referrers) > 0 {
		t.Errorf("a manifest: %d, referrers %s", w.Code, referrers)
	}
}

func TestStandaloneRegistryServesTLS(t *testing.T) {
	authority := certtest.New(t)
	pair := authority.Issue(t, "registry", "127.0.0.1")
	dir := t.TempDir()
	settings, err := configured(t, fmt.Sprintf("version: 0.1\nstorage: {filesystem: {rootdirectory: %[1]s}}\nhttp: {net: unix, addr: %[1]s/socket, tls: {certificate: %[2]s, key: %[3]s}}",
		dir, pair.CertFile, pair.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	component := componenttest.Run(t, (&Standalone{settings}).Run)
	component.WaitReady()
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: authority.Pool()}, DisableKeepAlives: true,
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			return net.Dial("unix", filepath.Join(dir, "socket"))
		},
	}}
	response, err := client.Get("https://127.0.0.1/v2/")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Errorf("/v2/: %s", response.Status)
	}
	component.Stop()
	if err := (&Standalone{&configuration.Configuration{}}).Run(t.Context(), func() {}); err == nil || !strings.Contains(err.Error(), "http.addr") {
		t.Errorf("without an address: %v", err)
	}
}

// bucket returns a storage configuration for a fake S3 server.
func bucket(t *testing.T) configuration.Storage {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket("images"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return configuration.Storage{"s3": {
		"regionendpoint": server.URL, "region": "us-east-1", "bucket": "images", "accesskey": "ann", "secretkey": "secret",
		"forcepathstyle": true, "secure": false, "rootdirectory": "/registry",
	}, "redirect": {"disable": true}}
}

func TestImagesAreStoredInS3(t *testing.T) {
	g := testRegistryOn(t, bucket(t))
	remaining, deleted := g.push("shop/app", g.layer()), g.push("shop/other", g.layer())
	bill := g.attach("shop/app", remaining, billType)
	if !g.has("shop/app", remaining) || !g.has("shop/other", deleted) || len(g.referring("shop/app", remaining)) != 1 {
		t.Fatal("a pushed image cannot be pulled")
	}
	request := record.GarbageRequest{Everything: true}
	garbage := g.collect(collection{request: request, images: map[string][]string{remaining: nil}, now: time.Now().Add(2 * time.Hour)})
	if len(garbage.Manifests) != 1 || len(garbage.Blobs) != 3 || g.has("shop/other", deleted) {
		t.Errorf("removed %+v", garbage)
	}
	if !g.has("shop/app", remaining) || !g.has("shop/app", bill) {
		t.Error("an image in use is incomplete")
	}
}

func TestIdleConnectionsEnd(t *testing.T) {
	front := frontOf(t.Context(), http.NotFoundHandler())
	if front.IdleTimeout <= 0 || front.ReadHeaderTimeout <= 0 {
		t.Errorf("a client keeps an idle connection for %s, and one without a request for %s", front.IdleTimeout, front.ReadHeaderTimeout)
	}
}
