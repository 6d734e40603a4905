package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// template is a directory with credentials that tests copy, because generating keys takes seconds.
var template = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "pki-test-")
	if err != nil {
		return "", err
	}
	_, err = Ensure(specIn(dir))
	return dir, err
})

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		runChild(dir)
	}
	code := m.Run()
	if dir, err := template(); err == nil {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

func specIn(dir string) Spec {
	return Spec{
		Dir:             filepath.Join(dir, "pki"),
		AdminKubeconfig: filepath.Join(dir, "admin.kubeconfig"),
		APIHosts:        []string{"host.example.com", "192.0.2.10", "172.30.0.1"},
		APIURL:          "https://192.0.2.10:8443",
		LoopbackURL:     "https://127.0.0.1:8443",
		NodeName:        "host.example.com",
		NodeHosts:       []string{"192.0.2.10", "2001:db8::1"},
	}
}

// newSpec returns the spec of a directory that already contains credentials.
func newSpec(t *testing.T) Spec {
	t.Helper()
	from, err := template()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	spec := specIn(dir)
	ensure(t, spec)
	return spec
}

func ensure(t *testing.T, spec Spec) *Credentials {
	t.Helper()
	credentials, err := Ensure(spec)
	if err != nil {
		t.Fatal(err)
	}
	return credentials
}

// contents returns the contents of all files in a directory and its subdirectories, keyed by path.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, dir+"/")] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func leavesOf(spec Spec) []leaf {
	spec = spec.completed()
	return (&issuer{spec: spec, credentials: &Credentials{Files: filesOf(spec)}}).leaves()
}

func TestFirstStartWritesEverything(t *testing.T) {
	spec := newSpec(t)
	files := contents(t, filepath.Dir(spec.Dir))
	want := []string{
		"admin.kubeconfig", "pki/.lock",
		"pki/admin.crt", "pki/admin.key",
		"pki/aggregator-front-proxy.crt", "pki/aggregator-front-proxy.key",
		"pki/ca.crt", "pki/ca.key",
		"pki/etcd.server.crt", "pki/etcd.server.key",
		"pki/frontproxy-ca.crt", "pki/frontproxy-ca.key",
		"pki/kube-controller-manager.crt", "pki/kube-controller-manager.key", "pki/kube-controller-manager.kubeconfig",
		"pki/kube-scheduler.crt", "pki/kube-scheduler.key", "pki/kube-scheduler.kubeconfig",
		"pki/master.etcd-ca.crt", "pki/master.etcd-ca.key",
		"pki/master.etcd-client.crt", "pki/master.etcd-client.key",
		"pki/master.kubelet-client.crt", "pki/master.kubelet-client.key",
		"pki/master.server.crt", "pki/master.server.key",
		"pki/node/ca.crt",
		"pki/node/kube-proxy.crt", "pki/node/kube-proxy.key", "pki/node/kube-proxy.kubeconfig",
		"pki/node/node.crt", "pki/node/node.key", "pki/node/node.kubeconfig",
		"pki/node/server.crt", "pki/node/server.key",
		"pki/node/slipway-dns.crt", "pki/node/slipway-dns.key", "pki/node/slipway-dns.kubeconfig",
		"pki/node/slipway-idling.crt", "pki/node/slipway-idling.key", "pki/node/slipway-idling.kubeconfig",
		"pki/node/slipway-node.crt", "pki/node/slipway-node.key", "pki/node/slipway-node.kubeconfig",
		"pki/node/slipway-router.crt", "pki/node/slipway-router.key", "pki/node/slipway-router.kubeconfig",
		"pki/node/slipway-storage.crt", "pki/node/slipway-storage.key", "pki/node/slipway-storage.kubeconfig",
		"pki/openshift-master.crt", "pki/openshift-master.key", "pki/openshift-master.kubeconfig",
		"pki/registry.crt", "pki/registry.key",
		"pki/service-ca.crt", "pki/service-signer.crt", "pki/service-signer.key",
		"pki/serviceaccounts.private.key", "pki/serviceaccounts.public.key",
	}
	var got []string
	for name := range files {
		got = append(got, name)
		info, err := os.Stat(filepath.Join(filepath.Dir(spec.Dir), name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(files[name], "PRIVATE KEY") || strings.HasSuffix(name, ".kubeconfig") {
			if info.Mode().Perm() != 0o600 {
				t.Errorf("%s: mode %v, want 0600", name, info.Mode())
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestCertificatesAreUsable(t *testing.T) {
	spec := newSpec(t)
	for _, l := range leavesOf(spec) {
		verify(t, l)
	}
	host, err := readCertificate(filesOf(spec).APIServer.Cert)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"localhost", "127.0.0.1", "::1", "host.example.com", "192.0.2.10", "172.30.0.1",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
		"openshift", "openshift.default", "openshift.default.svc", "openshift.default.svc.cluster.local",
	} {
		if err := host.VerifyHostname(name); err != nil {
			t.Errorf("master.server.crt: %v", err)
		}
	}
}

// verify verifies a certificate and its key against the certificate's authority, for each of the
// certificate's usages.
func verify(t *testing.T, l leaf) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(l.files.Cert, l.files.Key)
	if err != nil {
		t.Errorf("%s: %v", l.files.Cert, err)
		return
	}
	ca, err := readCertificate(l.authority.Cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	for _, usage := range l.usage {
		if _, err := pair.Leaf.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{usage}}); err != nil {
			t.Errorf("%s: %v", l.files.Cert, err)
		}
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	if !ok || key.Curve != elliptic.P256() || pair.Leaf.SignatureAlgorithm != x509.ECDSAWithSHA256 {
		t.Errorf("%s: key %T, signed with %v, want ECDSA on P-256 with SHA-256", l.files.Cert, pair.PrivateKey, pair.Leaf.SignatureAlgorithm)
	}
	if lifetime := time.Until(pair.Leaf.NotAfter); lifetime > year || lifetime < year-time.Hour {
		t.Errorf("%s: expires in %v, want a year", l.files.Cert, lifetime)
	}
}

func TestServiceAccountTokensAreSignedWithRSA(t *testing.T) {
	spec := newSpec(t)
	credentials, err := Ensure(spec)
	if err != nil {
		t.Fatal(err)
	}
	key, err := readKey(credentials.ServiceAccountKey)
	if err != nil {
		t.Fatal(err)
	}
	if key, ok := key.(*rsa.PrivateKey); !ok || key.N.BitLen() != tokenKeyBits {
		t.Errorf("key %T, want %d-bit RSA", key, tokenKeyBits)
	}
}

// Earlier versions generated RSA keys for all certificates.
func TestExistingRSAKeysAreKept(t *testing.T) {
	spec := newSpec(t)
	credentials, err := Ensure(spec)
	if err != nil {
		t.Fatal(err)
	}
	old, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	file := credentials.APIServer.Key
	content := encodePEM("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(old))
	if err := os.WriteFile(file, content, secret); err != nil {
		t.Fatal(err)
	}
	if _, err := Ensure(spec); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != string(content) {
		t.Errorf("the key was replaced: %v", err)
	}
	if _, err := tls.LoadX509KeyPair(credentials.APIServer.Cert, file); err != nil {
		t.Errorf("its certificate: %v", err)
	}
}

func TestEveryKeyIsDifferent(t *testing.T) {
	seen := map[string]string{}
	for name, content := range contents(t, newSpec(t).Dir) {
		if !strings.HasSuffix(name, ".key") {
			continue
		}
		if other, ok := seen[content]; ok {
			t.Errorf("%s and %s are the same key", name, other)
		}
		seen[content] = name
	}
}

func TestSecondStartChangesNothing(t *testing.T) {
	spec := newSpec(t)
	before := contents(t, filepath.Dir(spec.Dir))
	if issued := ensure(t, spec).Issued; len(issued) > 0 {
		t.Errorf("Issued: %v, want none", issued)
	}
	if diff := cmp.Diff(before, contents(t, filepath.Dir(spec.Dir))); diff != "" {
		t.Errorf("second start changed files:\n%s", diff)
	}
}

func TestConcurrentStartsCreateMatchingFiles(t *testing.T) {
	spec := newSpec(t)
	if err := os.Remove(filesOf(spec).KubeletServer.Key); err != nil {
		t.Fatal(err)
	}
	var starts sync.WaitGroup
	errs := make([]error, 4)
	for n := range errs {
		starts.Go(func() { _, errs[n] = Ensure(spec) })
	}
	starts.Wait()
	for _, err := range errs {
		if err != nil {
			t.Error(err)
		}
	}
	for _, l := range leavesOf(spec) {
		verify(t, l)
	}
}

func TestLooseModesOfKeysAreTightened(t *testing.T) {
	spec := newSpec(t)
	paths := []string{filesOf(spec).CA.Key, filesOf(spec).ServiceAccountKey, spec.AdminKubeconfig}
	for _, path := range paths {
		if err := os.Chmod(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ensure(t, spec)
	for _, path := range paths {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v, want mode 0600", path, info, err)
		}
	}
}

func TestOnlyTwoCertificatesAreInSystemMasters(t *testing.T) {
	spec := newSpec(t)
	var powerful []string
	err := filepath.WalkDir(spec.Dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".crt") {
			return err
		}
		certificate, err := readCertificate(path)
		if err == nil && slices.Contains(certificate.Subject.Organization, "system:masters") {
			powerful = append(powerful, filepath.Base(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"admin.crt", "openshift-master.crt"}; !slices.Equal(powerful, want) {
		t.Errorf("in system:masters are %v, want %v", powerful, want)
	}
}
