package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/util"
)

// execute runs a command with the given standard input. It returns the standard output, the
// standard error, and the failure message.
func execute(t *testing.T, newCommand func(genericiooptions.IOStreams) *cobra.Command, in string, args ...string) (out, warnings string, failure string) {
	t.Helper()
	streams, stdin, stdout, stderr := genericiooptions.NewTestIOStreams()
	stdin.WriteString(in)
	util.BehaviorOnFatal(func(message string, _ int) {
		failure = message
		panic(message)
	})
	defer util.DefaultBehaviorOnFatal()
	defer func() {
		if recover() != nil {
			out, warnings = stdout.String(), stderr.String()
		}
	}()
	command := newCommand(streams)
	command.SetArgs(args)
	if err := command.Execute(); err != nil {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), ""
}

// newSigner creates a CA in a new directory. It returns the directory and the flags for the CA's
// files.
func newSigner(t *testing.T) (dir string, flags []string) {
	t.Helper()
	dir = t.TempDir()
	cert, key, serial := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key"), filepath.Join(dir, "ca.serial.txt")
	if _, warnings, failure := execute(t, New, "", "create-signer-cert", "--cert="+cert, "--key="+key, "--serial="+serial, "--name=test"); failure != "" || warnings != "" {
		t.Fatal(failure, warnings)
	}
	return dir, []string{"--signer-cert=" + cert, "--signer-key=" + key, "--signer-serial=" + serial}
}

func certificate(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(content)
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func TestServerCertificateIsSignedForItsHosts(t *testing.T) {
	dir, signer := newSigner(t)
	cert, key := filepath.Join(dir, "shop.crt"), filepath.Join(dir, "shop.key")
	args := append(signer, "create-server-cert", "--hostnames=shop.example.com,192.0.2.1", "--cert="+cert, "--key="+key)
	if _, warnings, failure := execute(t, New, "", args...); failure != "" || warnings != "" {
		t.Fatal(failure, warnings)
	}
	pool := x509.NewCertPool()
	pool.AddCert(certificate(t, filepath.Join(dir, "ca.crt")))
	leaf := certificate(t, cert)
	for _, host := range []string{"shop.example.com", "192.0.2.1"} {
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: pool, DNSName: host}); err != nil {
			t.Error(host, err)
		}
	}
	if days := time.Until(leaf.NotAfter).Hours() / 24; days < certificateDays-1 || days > certificateDays {
		t.Errorf("certificate is valid for %v days", days)
	}
	if serial, _ := os.ReadFile(filepath.Join(dir, "ca.serial.txt")); string(serial) != "02\n" || leaf.SerialNumber.Int64() != 2 {
		t.Errorf("serial file %q, serial number %v", serial, leaf.SerialNumber)
	}
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode of the key: %v, %v", info.Mode(), err)
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		t.Error(err)
	}
}

func TestLongLifetimeCausesWarning(t *testing.T) {
	dir, signer := newSigner(t)
	args := append(signer, "create-server-cert", "--hostnames=a", "--cert="+dir+"/a.crt", "--key="+dir+"/a.key", "--expire-days=1000")
	if _, warnings, failure := execute(t, New, "", args...); failure != "" || !strings.Contains(warnings, "greater than 2 years") {
		t.Errorf("failure %q, warnings %q", failure, warnings)
	}
}

func TestClientConfigurationHasUser(t *testing.T) {
	dir, signer := newSigner(t)
	args := append(signer, "--client-dir="+dir, "--user=alice", "--groups=developers", "--certificate-authority="+dir+"/ca.crt", "--master=https://192.0.2.1:8443")
	if _, _, failure := execute(t, NewClientConfig, "", args...); failure != "" {
		t.Fatal(failure)
	}
	leaf := certificate(t, dir+"/alice.crt")
	if leaf.Subject.CommonName != "alice" || !slices.Equal(leaf.Subject.Organization, []string{"developers"}) {
		t.Errorf("subject %v", leaf.Subject)
	}
	config, err := clientcmd.LoadFromFile(dir + "/alice.kubeconfig")
	if err != nil {
		t.Fatal(err)
	}
	if config.CurrentContext != "default/192-0-2-1:8443/alice" || config.Clusters["192-0-2-1:8443"].Server != "https://192.0.2.1:8443" {
		t.Errorf("context %q, clusters %v", config.CurrentContext, config.Clusters)
	}
}

func TestMasterHasAllFiles(t *testing.T) {
	dir := t.TempDir()
	if _, warnings, failure := execute(t, New, "", "create-master-certs", "--cert-dir="+dir, "--hostnames=master.example.com"); failure != "" || warnings != "" {
		t.Fatal(failure, warnings)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	want := strings.Fields(`admin.crt admin.key admin.kubeconfig aggregator-front-proxy.crt aggregator-front-proxy.key ca-bundle.crt ca.crt ca.key
		ca.serial.txt etcd.server.crt etcd.server.key frontproxy-ca.crt frontproxy-ca.key frontproxy-ca.serial.txt master.etcd-client.crt
		master.etcd-client.key master.kubelet-client.crt master.kubelet-client.key master.proxy-client.crt master.proxy-client.key
		master.server.crt master.server.key openshift-master.crt openshift-master.key openshift-master.kubeconfig
		service-signer.crt service-signer.key serviceaccounts.private.key serviceaccounts.public.key`)
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func TestUnusableFlagsAreRejected(t *testing.T) {
	for want, args := range map[string]string{
		"at least one hostname must be provided": "create-master-certs",
		"master must be provided":                "create-master-certs --hostnames=a --master=",
		"master must be a valid URL":             "create-master-certs --hostnames=a --master=example.com",
		"public master must be a valid URL":      "create-master-certs --hostnames=a --public-master=example.com",
		"expire-days must be valid number":       "create-signer-cert --cert=a --key=b --expire-days=0",
		"must be different":                      "create-key-pair --public-key=a --private-key=a",
		"--genkey or --key is required":          "encrypt",
		"no key specified":                       "decrypt",
	} {
		if _, _, failure := execute(t, New, "", strings.Fields(args)...); !strings.Contains(failure, want) {
			t.Errorf("oc adm ca %s: %q, want %q", args, failure, want)
		}
	}
}

func TestNodeConfigurationIsComplete(t *testing.T) {
	dir, signer := newSigner(t)
	ca := dir + "/ca.crt"
	args := append(signer, "--node-dir="+dir+"/node", "--node=node1", "--hostnames=node1.example.com",
		"--certificate-authority="+ca, "--node-client-certificate-authority="+ca)
	if _, _, failure := execute(t, NewNodeConfig, "", args...); failure != "" {
		t.Fatal(failure)
	}
	if subject := certificate(t, dir+"/node/master-client.crt").Subject.String(); subject != "CN=system:node:node1,O=system:nodes" {
		t.Errorf("subject of the client %q", subject)
	}
	config, err := os.ReadFile(dir + "/node/node-config.yaml")
	if err != nil || !bytes.Contains(config, []byte("nodeName: node1\n")) {
		t.Errorf("%v\n%s", err, config)
	}
}

func TestDecryptReadsOutputOfEncrypt(t *testing.T) {
	dir := t.TempDir()
	encrypted, warnings, failure := execute(t, New, " secret", "encrypt", "--genkey="+dir+"/key")
	if failure != "" || !strings.Contains(warnings, "whitespace") || strings.Contains(encrypted, "secret") {
		t.Fatal(failure, warnings, encrypted)
	}
	if plain, _, failure := execute(t, New, encrypted, "decrypt", "--key="+dir+"/key"); plain != " secret" {
		t.Errorf("decrypted %q, %s", plain, failure)
	}
	if _, _, failure := execute(t, New, "", "encrypt", "--genkey="+dir+"/other"); failure != "" {
		t.Fatal(failure)
	}
	if plain, _, failure := execute(t, New, encrypted, "decrypt", "--key="+dir+"/other"); failure == "" {
		t.Errorf("another key decrypts to %q", plain)
	}
}

func TestDecryptReadsDataOfOpenShift3(t *testing.T) {
	dir, key := t.TempDir(), []byte("password of an old client")
	//nolint:staticcheck // what OpenShift 3 wrote
	block, err := x509.EncryptPEMBlock(bytes.NewReader(make([]byte, 16)), encryptedBlock, []byte("old secret"), key, x509.PEMCipherAES256)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/key", encodePEM(keyBlock, key), 0o600); err != nil {
		t.Fatal(err)
	}
	plain, _, failure := execute(t, New, string(pem.EncodeToMemory(block)), "decrypt", "--key="+dir+"/key")
	if plain != "old secret" {
		t.Errorf("decrypted %q, %s", plain, failure)
	}
}

func TestCreatorsAreHiddenBelowAdm(t *testing.T) {
	streams, _, _, _ := genericiooptions.NewTestIOStreams()
	var names []string
	for _, command := range NewCreators(streams) {
		names = append(names, command.Name())
		if !command.Hidden {
			t.Errorf("%s is in the help", command.Name())
		}
	}
	want := []string{"create-signer-cert", "create-server-cert", "create-master-certs", "create-key-pair"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("commands (-want +got):\n%s", diff)
	}
}
