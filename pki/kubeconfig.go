package pki

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ReadKubeconfig returns the client configuration in a kubeconfig.
func ReadKubeconfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", path, err)
	}
	return config, nil
}

// NewClient returns a client that uses a kubeconfig's credentials.
func NewClient(kubeconfig string) (kubernetes.Interface, error) {
	config, err := ReadKubeconfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("create client of %q: %w", kubeconfig, err)
	}
	return client, nil
}

// ensureKubeconfigs writes a kubeconfig for each client.
func (i *issuer) ensureKubeconfigs() error {
	f := i.credentials.Files
	type own struct{ path, user, ca, url string }
	master, node := i.spec.LoopbackURL, i.spec.NodeURL
	clients := []own{
		{f.MasterKubeconfig, "system:openshift-master", f.CA.Cert, master},
		{f.ControllerManagerKubeconfig, "system:kube-controller-manager", f.CA.Cert, master},
		{f.SchedulerKubeconfig, "system:kube-scheduler", f.CA.Cert, master},
		{f.NodeKubeconfig, "system:node:" + i.spec.NodeName, f.NodeCA, node},
	}
	for _, c := range NodeClients() {
		clients = append(clients, own{c.Kubeconfig(f), c.User, f.NodeCA, node})
	}
	for _, c := range clients {
		if err := i.ensureOwn(c.path, c.user, c.ca, c.url); err != nil {
			return err
		}
	}
	return i.ensureAdmin()
}

// ensureOwn writes the kubeconfig for one of this host's components. The kubeconfig refers to
// certificate files. It disables compression, which would cost the API server 40 kB for each watch
// and CPU time for each event. Kubernetes' own control plane does not compress responses either.
func (i *issuer) ensureOwn(path, user, ca, url string) error {
	client := clientOf(path)
	config, err := kubeconfig(url, user,
		&clientcmdapi.Cluster{CertificateAuthority: ca, DisableCompression: true},
		&clientcmdapi.AuthInfo{ClientCertificate: client.Cert, ClientKey: client.Key})
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", path, err)
	}
	changed, err := writeIfDifferent(path, content, secret)
	if changed && err == nil {
		i.record(path)
	}
	return err
}

// ensureAdmin writes the administrator's kubeconfig, which embeds its certificates. It keeps the
// other content of the file, such as contexts for projects.
func (i *issuer) ensureAdmin() error {
	const user = "system:admin"
	pair, path := i.client("admin"), i.credentials.AdminKubeconfig
	var content [3][]byte
	for n, file := range []string{i.credentials.CA.Cert, pair.Cert, pair.Key} {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("read certificate: %w", err)
		}
		content[n] = data
	}
	want, err := kubeconfig(i.spec.APIURL, user,
		&clientcmdapi.Cluster{CertificateAuthorityData: content[0]},
		&clientcmdapi.AuthInfo{ClientCertificateData: content[1], ClientKeyData: content[2]})
	if err != nil {
		return err
	}
	config, err := clientcmd.LoadFromFile(path)
	if err != nil {
		config = clientcmdapi.NewConfig() // the file is missing or damaged
	}
	if holds(config, want) {
		return tighten(path)
	}
	merge(config, want, user)
	data, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create kubeconfig directory: %w", err)
	}
	if err := atomicfile.Write(path, data, secret); err != nil {
		return err
	}
	i.record(path)
	return nil
}

// kubeconfig returns a configuration with one cluster, user and context. Their names follow
// OpenShift 3: `default/<host-port>/<user>`.
func kubeconfig(server, user string, cluster *clientcmdapi.Cluster,
	auth *clientcmdapi.AuthInfo) (*clientcmdapi.Config, error) {
	address, err := url.Parse(server)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("write kubeconfig of %s: %q is not the URL of an API server", user, server)
	}
	host := strings.ReplaceAll(address.Host, ".", "-")
	cluster.Server = server
	context := "default/" + host + "/" + user
	config := clientcmdapi.NewConfig()
	config.Clusters[host] = cluster
	config.AuthInfos[user+"/"+host] = auth
	config.Contexts[context] = &clientcmdapi.Context{Cluster: host, AuthInfo: user + "/" + host, Namespace: "default"}
	config.CurrentContext = context
	return config, nil
}

// holds reports whether config contains want's cluster, user and context, and a current context.
func holds(config, want *clientcmdapi.Config) bool {
	for name, cluster := range want.Clusters {
		have := config.Clusters[name]
		if have == nil || have.Server != cluster.Server || string(have.CertificateAuthorityData) != string(cluster.CertificateAuthorityData) {
			return false
		}
	}
	for name, auth := range want.AuthInfos {
		have := config.AuthInfos[name]
		if have == nil || string(have.ClientCertificateData) != string(auth.ClientCertificateData) || string(have.ClientKeyData) != string(auth.ClientKeyData) {
			return false
		}
	}
	for name, context := range want.Contexts {
		if !sameContext(config.Contexts[name], context) {
			return false
		}
	}
	return config.Contexts[config.CurrentContext] != nil
}

// merge adds want to config, and removes the user's entries for an earlier address of this API
// server.
func merge(config, want *clientcmdapi.Config, user string) {
	for name, context := range config.Contexts {
		outdated := strings.HasPrefix(context.AuthInfo, user+"/") && want.AuthInfos[context.AuthInfo] == nil
		if outdated && sameAuthority(config.Clusters[context.Cluster], want) {
			delete(config.AuthInfos, context.AuthInfo)
			delete(config.Contexts, name)
		}
	}
	for name, cluster := range config.Clusters {
		if sameAuthority(cluster, want) {
			delete(config.Clusters, name)
		}
	}
	maps.Copy(config.Clusters, want.Clusters)
	maps.Copy(config.AuthInfos, want.AuthInfos)
	for name, context := range want.Contexts {
		if !sameContext(config.Contexts[name], context) {
			config.Contexts[name] = context
		}
	}
	if config.Contexts[config.CurrentContext] == nil {
		config.CurrentContext = want.CurrentContext
	}
}

func sameContext(a, b *clientcmdapi.Context) bool {
	return a != nil && a.Cluster == b.Cluster && a.AuthInfo == b.AuthInfo
}

// sameAuthority reports whether cluster trusts the same authority as want's cluster.
func sameAuthority(cluster *clientcmdapi.Cluster, want *clientcmdapi.Config) bool {
	for _, c := range want.Clusters {
		if cluster != nil && bytes.Equal(cluster.CertificateAuthorityData, c.CertificateAuthorityData) {
			return true
		}
	}
	return false
}
