package pki

import (
	"bytes"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ensureKubeconfigs writes a kubeconfig for each client.
func (i *issuer) ensureKubeconfigs() error {
	f := i.identity.Files
	for _, own := range []struct{ path, user, ca string }{
		{f.MasterKubeconfig, "system:openshift-master", f.CA.Cert},
		{f.ControllerManagerKubeconfig, "system:kube-controller-manager", f.CA.Cert},
		{f.SchedulerKubeconfig, "system:kube-scheduler", f.CA.Cert},
		{f.NodeKubeconfig, "system:node:" + i.spec.NodeName, f.NodeCA},
		{f.ProxyKubeconfig, "system:kube-proxy", f.NodeCA},
		{f.AgentKubeconfig, "system:slipway-node", f.NodeCA},
		{f.DNSKubeconfig, "system:slipway-dns", f.NodeCA},
		{f.RouterKubeconfig, "system:slipway-router", f.NodeCA},
		{f.IdlingKubeconfig, "system:slipway-idling", f.NodeCA},
		{f.StorageKubeconfig, "system:slipway-storage", f.NodeCA},
	} {
		if err := i.ensureOwn(own.path, own.user, own.ca); err != nil {
			return err
		}
	}
	return i.ensureAdmin()
}

// ensureOwn writes the kubeconfig of a part of this host, which names files.
func (i *issuer) ensureOwn(path, user, ca string) error {
	client := clientOf(path)
	config, err := kubeconfig(i.spec.LoopbackURL, user,
		&clientcmdapi.Cluster{CertificateAuthority: ca},
		&clientcmdapi.AuthInfo{ClientCertificate: client.Cert, ClientKey: client.Key})
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", path, err)
	}
	written, err := writeIfDifferent(path, content, secret)
	if written && err == nil {
		i.issued(path)
	}
	return err
}

// ensureAdmin writes the administrator's kubeconfig, which holds its certificates. What else the
// administrator keeps in it, such as contexts of projects, stays.
func (i *issuer) ensureAdmin() error {
	const user = "system:admin"
	pair, path := i.client("admin"), i.identity.AdminKubeconfig
	var content [3][]byte
	for n, file := range []string{i.identity.CA.Cert, pair.Cert, pair.Key} {
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
	found, err := clientcmd.LoadFromFile(path)
	if err != nil {
		found = clientcmdapi.NewConfig() // missing or damaged
	}
	if holds(found, want) {
		return tighten(path)
	}
	merge(found, want, user)
	data, err := clientcmd.Write(*found)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("create folder of kubeconfig: %w", err)
	}
	if err := atomicfile.Write(path, data, secret); err != nil {
		return err
	}
	i.issued(path)
	return nil
}

// kubeconfig has one cluster, user and context, named as OpenShift 3 does: `default/<host-port>/<user>`.
func kubeconfig(server, user string, cluster *clientcmdapi.Cluster, auth *clientcmdapi.AuthInfo) (*clientcmdapi.Config, error) {
	address, err := url.Parse(server)
	if err != nil || address.Host == "" {
		return nil, fmt.Errorf("write kubeconfig of %s: %q is not a URL of an API server", user, server)
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

// holds reports whether config has the cluster, user and context of want and some current context.
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

// merge puts want into config and drops what an earlier address of this API server has left of user.
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

// sameAuthority reports whether cluster trusts the authority that those of want trust.
func sameAuthority(cluster *clientcmdapi.Cluster, want *clientcmdapi.Config) bool {
	for _, own := range want.Clusters {
		if cluster != nil && bytes.Equal(cluster.CertificateAuthorityData, own.CertificateAuthorityData) {
			return true
		}
	}
	return false
}
