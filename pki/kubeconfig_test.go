package pki

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// caller contains the user and groups that the server has authenticated.
type caller struct {
	User   string
	Groups []string
}

// TestKubeconfigsAuthenticate sends a request with each kubeconfig to a server that presents the
// API server's certificate.
func TestKubeconfigsAuthenticate(t *testing.T) {
	spec := newSpec(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject := r.TLS.PeerCertificates[0].Subject
		json.NewEncoder(w).Encode(caller{subject.CommonName, subject.Organization})
	}))
	files := filesOf(spec)
	pair, err := tls.LoadX509KeyPair(files.APIServer.Cert, files.APIServer.Key)
	if err != nil {
		t.Fatal(err)
	}
	ca, err := readCertificate(files.CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert}
	server.StartTLS()
	defer server.Close()
	spec.LoopbackURL, spec.APIURL = server.URL, server.URL
	ensure(t, spec)

	for path, want := range map[string]caller{
		files.AdminKubeconfig:             {"system:admin", []string{"system:cluster-admins", "system:masters"}},
		files.MasterKubeconfig:            {"system:openshift-master", []string{"system:masters"}},
		files.ControllerManagerKubeconfig: {"system:kube-controller-manager", nil},
		files.SchedulerKubeconfig:         {"system:kube-scheduler", nil},
		files.NodeKubeconfig:              {"system:node:host.example.com", []string{"system:nodes"}},
		files.ProxyKubeconfig:             {"system:kube-proxy", nil},
		files.AgentKubeconfig:             {"system:slipway-node", []string{"system:slipway-nodes"}},
		files.DNSKubeconfig:               {"system:slipway-dns", []string{"system:slipway-dns-servers"}},
		files.RouterKubeconfig:            {"system:slipway-router", []string{"system:slipway-routers"}},
		files.IdlingKubeconfig:            {"system:slipway-idling", []string{"system:slipway-idling-proxies"}},
		files.StorageKubeconfig:           {"system:slipway-storage", []string{"system:slipway-storages"}},
	} {
		config, err := ReadKubeconfig(path)
		if err != nil {
			t.Fatal(err)
		}
		if path == files.AdminKubeconfig {
			if config.CertFile != "" || len(config.CertData) == 0 {
				t.Errorf("%s refers to files, want embedded certificates", path)
			}
		} else if config.CertFile == "" || config.KeyFile == "" || len(config.CertData) > 0 {
			t.Errorf("%s embeds certificates, want references to files, which clients reload", path)
		}
		if own := path != files.AdminKubeconfig; config.DisableCompression != own {
			t.Errorf("%s disables compression: %t, want %t", path, config.DisableCompression, own)
		}
		if got := call(t, config); !sameSet(got.Groups, want.Groups) || got.User != want.User {
			t.Errorf("%s: the server sees %v, want %v", path, got, want)
		}
	}
}

func TestKubeconfigErrorsNameTheFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{
		"missing":  "",
		"damaged":  "{",
		"ca-file":  "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: 'https://127.0.0.1', certificate-authority: none.crt}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}",
		"unusable": "{apiVersion: v1, kind: Config, clusters: [{name: c, cluster: {server: '::'}}], contexts: [{name: c, context: {cluster: c}}], current-context: c}",
	} {
		path := filepath.Join(dir, name)
		if content != "" {
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := NewClient(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: got error %v, want one that names %s", name, err, path)
		}
	}
}

func call(t *testing.T, config *rest.Config) caller {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Get(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got caller
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAdminKubeconfigHasOpenShiftNames(t *testing.T) {
	config, err := clientcmd.LoadFromFile(newSpec(t).AdminKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	context := config.Contexts["default/192-0-2-10:8443/system:admin"]
	if context == nil || config.CurrentContext != "default/192-0-2-10:8443/system:admin" {
		t.Fatalf("contexts %v, current %q", config.Contexts, config.CurrentContext)
	}
	got := []string{context.Cluster, context.AuthInfo, context.Namespace, config.Clusters[context.Cluster].Server}
	want := []string{"192-0-2-10:8443", "system:admin/192-0-2-10:8443", "default", "https://192.0.2.10:8443"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("context (-want +got):\n%s", diff)
	}
}

func TestAdminKubeconfigKeepsOtherContexts(t *testing.T) {
	spec := newSpec(t)
	config, err := clientcmd.LoadFromFile(spec.AdminKubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	// Add another cluster, and a context as `oc project web` adds it.
	config.Clusters["far:8443"] = &clientcmdapi.Cluster{Server: "https://far:8443", CertificateAuthorityData: []byte("other")}
	config.AuthInfos["system:admin/far:8443"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["far"] = &clientcmdapi.Context{Cluster: "far:8443", AuthInfo: "system:admin/far:8443"}
	config.Contexts["web"] = &clientcmdapi.Context{Cluster: "192-0-2-10:8443", AuthInfo: "system:admin/192-0-2-10:8443", Namespace: "web"}
	config.CurrentContext = "web"
	if err := clientcmd.WriteToFile(*config, spec.AdminKubeconfig); err != nil {
		t.Fatal(err)
	}
	if issued := ensure(t, spec).Issued; len(issued) > 0 {
		t.Errorf("Issued: %v, want none", issued)
	}

	renewed := spec
	after(300*24*60*60*1e9)(t, &renewed)
	ensure(t, renewed)
	checkContexts(t, spec.AdminKubeconfig, "web", "default/192-0-2-10:8443/system:admin", "far", "web")

	spec.APIURL = "https://192.0.2.11:8443"
	ensure(t, spec)
	checkContexts(t, spec.AdminKubeconfig, "default/192-0-2-11:8443/system:admin", "default/192-0-2-11:8443/system:admin", "far")
}

func checkContexts(t *testing.T, path, current string, contexts ...string) {
	t.Helper()
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for name := range config.Contexts {
		got = append(got, name)
	}
	if config.CurrentContext != current || !sameSet(got, contexts) {
		t.Errorf("contexts %v, current %q, want %v, %q", got, config.CurrentContext, contexts, current)
	}
	if err := clientcmd.ConfirmUsable(*config, ""); err != nil {
		t.Error(err)
	}
}

func TestErrorContainsInvalidURL(t *testing.T) {
	spec := newSpec(t)
	spec.APIURL = "192.0.2.10"
	_, err := Ensure(spec)
	if want := `write kubeconfig of system:admin: "192.0.2.10" is not the URL of an API server`; err == nil || err.Error() != want {
		t.Errorf("Ensure: %v, want %s", err, want)
	}
}
