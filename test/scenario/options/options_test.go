// Package options tests settings and commands that affect a cluster's stored data: the audit log,
// encrypted secrets, and images that are loaded from archives.
package options

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/test/kit"
)

const policy = `
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
`

func TestRequestsAreAuditedAndSecretsEncryptedLater(t *testing.T) {
	dir := t.TempDir()
	policyFile, log := filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.log")
	if err := os.WriteFile(policyFile, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	public, operators := certtest.New(t).Issue(t, "public"), certtest.New(t)
	c := kit.Start(t, kit.Options{Node: "servingInfo: {clientCA: " + operators.File + ", bindNetwork: tcp4}", Master: fmt.Sprintf(`
servingInfo:
  minTLSVersion: VersionTLS10
  cipherSuites: [TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA]
  namedCertificates: [{names: [api.example.com], certFile: %s, keyFile: %s}]
auditConfig: {enabled: true, auditFilePath: %s, policyFile: %s}
slipway: {encryptSecrets: false}
`, public.CertFile, public.KeyFile, log, policyFile)})
	checkTLS(t, c, public)
	kubeletAcceptsClients(t, c, operators)
	c.OC("create", "secret", "generic", "treasure", "--from-literal=where=under-the-palm")
	c.OC("create", "configmap", "map", "--from-literal=where=over-the-hill")

	c.WaitFor("the request in the audit log", func(context.Context) error {
		content, err := os.ReadFile(log)
		if err == nil && !bytes.Contains(content, []byte(`"name":"treasure"`)) {
			err = fmt.Errorf("the secret is not in the %d bytes of the log", len(content))
		}
		return err
	})
	if got := raw(t, c, "secrets/default/treasure"); !strings.Contains(got, "under-the-palm") {
		t.Errorf("without encryption the secret is stored as %q", got)
	}
	encryptsExisting(t, c)
	rotatesKeys(t, c)
}

// encryptsExisting enables encryption. It kills the control plane while the existing objects are
// being encrypted.
func encryptsExisting(t *testing.T, c *kit.Cluster) {
	t.Helper()
	const secrets = 150
	for i := range secrets {
		c.Apply(fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: box-%d}, stringData: {where: in-a-box}}", i))
	}
	c.Down()
	content, err := os.ReadFile(c.MasterFile())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.MasterFile(), bytes.ReplaceAll(content, []byte("encryptSecrets: false"), []byte("encryptSecrets: true")), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Up()
	c.Kill("control-plane")
	waitEncrypted(t, c)
	for _, name := range []string{"treasure", "box-0", "box-149"} {
		if got := raw(t, c, "secrets/default/"+name); !strings.HasPrefix(got, "k8s:enc:secretbox:v1:key1:") {
			t.Errorf("secret %s is stored as %.60q", name, got)
		}
	}
	if got := raw(t, c, "configmaps/default/map"); !strings.Contains(got, "over-the-hill") {
		t.Errorf("the config map is stored as %q", got)
	}
	if got := c.OC("get", "secret", "treasure", "-o", "jsonpath={.data.where}"); got != "dW5kZXItdGhlLXBhbG0=" {
		t.Errorf("the secret reads %q", got)
	}
}

// rotatesKeys encrypts all objects with a new key. It restarts the control plane, because the API
// server could otherwise take up to a minute to reread the file with the keys.
func rotatesKeys(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.MustSlipway("encryption", "rotate")
	c.Kill("control-plane")
	waitEncrypted(t, c)
	if got := raw(t, c, "secrets/default/treasure"); !strings.HasPrefix(got, "k8s:enc:secretbox:v1:key2:") {
		t.Errorf("the secret is stored as %.60q", got)
	}
	if got := c.OC("get", "secret", "treasure", "-o", "jsonpath={.data.where}"); got != "dW5kZXItdGhlLXBhbG0=" {
		t.Errorf("the secret reads %q", got)
	}
}

// waitEncrypted waits until all objects are stored with the current encryption key.
func waitEncrypted(t *testing.T, c *kit.Cluster) {
	t.Helper()
	content, err := os.ReadFile(c.Path("pki", "encryption.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	version := fmt.Sprintf("%x", sha256.Sum256(content))
	c.WaitFor("encryption of all objects", func(context.Context) error {
		got, err := c.TryOC("get", "configmap", "-n", "kube-system", "slipway-encryption", "-o", "jsonpath={.data.version}")
		if err == nil && got != version {
			err = fmt.Errorf("the version is %q, want %q", got, version)
		}
		return err
	})
}

// raw returns an object as etcd stores it.
func raw(t *testing.T, c *kit.Cluster, key string) string {
	t.Helper()
	store, err := clientv3.New(clientv3.Config{Endpoints: []string{"unix://" + c.Path("run", "etcd.sock")}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	got, err := store.Get(t.Context(), "/registry/"+key)
	if err != nil || len(got.Kvs) != 1 {
		t.Fatalf("read %s: %v, %v", key, got, err)
	}
	return string(got.Kvs[0].Value)
}

func rootFS(t *testing.T, image v1.Image) v1.RootFS {
	t.Helper()
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	return config.RootFS
}

func TestImagesAreLoadedFromArchives(t *testing.T) {
	c := kit.Shared(t)
	archive := filepath.Join(t.TempDir(), "image.tar")
	image, err := random.Image(1024, 2)
	if err != nil {
		t.Fatal(err)
	}
	image, err = mutate.ConfigFile(image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, RootFS: rootFS(t, image)})
	if err != nil {
		t.Fatal(err)
	}
	tag, err := name.NewTag("registry.example.com/team/app:v1")
	if err != nil {
		t.Fatal(err)
	}
	if err := tarball.WriteToFile(archive, tag, image); err != nil {
		t.Fatal(err)
	}
	if got := c.MustSlipway("images", "load", archive); !strings.Contains(got, tag.Name()) {
		t.Errorf("images load printed %q", got)
	}
	if got := c.MustSlipway("images", "list"); !strings.Contains(got, tag.Name()) {
		t.Errorf("images list printed %q", got)
	}
	broken := c.Slipway("images", "load", c.RepositoryFile("README.md"))
	if broken.Code != 1 || !strings.Contains(broken.Stderr, "README.md") {
		t.Errorf("images load of a text file exited with %d: %s", broken.Code, broken.Stderr)
	}
}

// schedulerArguments specifies a ConfigMap that does not exist when the scheduler starts.
const schedulerArguments = "kubernetesMasterConfig: {schedulerArguments: {policy-configmap: [scheduler-policy]}}"

func TestMain(m *testing.M) {
	kit.MainWith(m, kit.Options{Master: schedulerArguments + jenkinsSettings})
}

// checkTLS connects to the API server with old and new TLS versions, and with different server
// names.
func checkTLS(t *testing.T, c *kit.Cluster, public certtest.Pair) {
	t.Helper()
	connect := func(config *tls.Config) (tls.ConnectionState, error) {
		conn, err := c.Dial(t.Context(), "tcp", c.Address.String()+":8443")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		config.InsecureSkipVerify = true // The test checks the certificate itself.
		client := tls.Client(conn, config)
		err = client.HandshakeContext(t.Context())
		return client.ConnectionState(), err
	}
	state, err := connect(&tls.Config{ServerName: "api.example.com"})
	if err != nil || !state.PeerCertificates[0].Equal(public.Certificate) {
		t.Errorf("certificate for the public name: %v, or another certificate", err)
	}
	apiState, err := connect(&tls.Config{ServerName: "kubernetes"})
	if err != nil || apiState.PeerCertificates[0].Equal(public.Certificate) {
		t.Errorf("certificate for the host's name: %v, or the public certificate", err)
	}
	old, err := connect(&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}})
	if err != nil || old.Version != tls.VersionTLS10 {
		t.Errorf("connection with TLS 1.0, which the configuration allows: %v", err)
	}
	if _, err := connect(&tls.Config{MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256}}); err == nil {
		t.Error("the server accepts a cipher suite that is not configured")
	}
}

// kubeletAcceptsClients tests that the kubelet accepts only client certificates that are signed by
// servingInfo.clientCA, and authorizes clients according to the cluster's roles.
func kubeletAcceptsClients(t *testing.T, c *kit.Cluster, operators *certtest.Authority) {
	t.Helper()
	c.OC("adm", "policy", "add-cluster-role-to-user", "cluster-admin", "operator")
	for name, tt := range map[string]struct {
		pair certtest.Pair
		want int
	}{
		"with rights":    {operators.Issue(t, "operator"), http.StatusOK},
		"without rights": {operators.Issue(t, "visitor"), http.StatusForbidden},
		"of another CA":  {certtest.New(t).Issue(t, "operator"), http.StatusUnauthorized},
	} {
		certificate, err := tls.LoadX509KeyPair(tt.pair.CertFile, tt.pair.KeyFile)
		if err != nil {
			t.Fatal(err)
		}
		client := http.Client{Transport: &http.Transport{DialContext: c.Dial, TLSClientConfig: &tls.Config{
			InsecureSkipVerify:   true, // The test is about the client's certificate.
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &certificate, nil },
		}}}
		c.WaitFor("response to a client "+name, func(ctx context.Context) error {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.Address.String()+":10250/pods", nil)
			if err != nil {
				return err
			}
			response, err := client.Do(request)
			if err != nil {
				return err
			}
			defer response.Body.Close()
			if response.StatusCode != tt.want {
				return fmt.Errorf("the status is %s, want %d", response.Status, tt.want)
			}
			return nil
		})
	}
}
