package pki

import "path/filepath"

// Pair contains the absolute paths of a PEM certificate and its PEM private key.
type Pair struct {
	Cert, Key string
}

// Files contains the absolute paths of a host's credentials.
type Files struct {
	// CA signs the certificates of the API server, kubelets and clients.
	CA Pair
	// FrontProxyCA signs only FrontProxy, so that no other client can impersonate the aggregator.
	FrontProxyCA Pair
	// EtcdCA signs only EtcdServer and EtcdClient, so that no user of the cluster can connect to
	// etcd.
	EtcdCA Pair
	// ServiceSigner signs the serving certificates of services (service-signer.crt). ServiceCA is
	// the CA bundle that verifies them: it contains the signer's certificate and the unexpired
	// certificates of earlier signers.
	ServiceSigner Pair
	ServiceCA     string

	// APIServer is the API server's serving certificate (master.server.crt).
	APIServer Pair
	// Registry is the image registry's serving certificate.
	Registry Pair
	// KubeletClient is the API server's client certificate for kubelets:
	// `system:openshift-node-admin` in `system:node-admins`, as in OpenShift 3.
	KubeletClient Pair
	// FrontProxy is the aggregator's client certificate for aggregated API servers,
	// `front-proxy-client`.
	FrontProxy Pair
	// EtcdServer is etcd's serving certificate for clients, and its client and serving certificate
	// for peers.
	EtcdServer Pair
	// EtcdClient is the API server's client certificate for etcd. etcdctl can use it too.
	EtcdClient Pair
	// ServiceAccountKey signs service account tokens. ServiceAccountPublicKey verifies them.
	ServiceAccountKey, ServiceAccountPublicKey string

	// AdminKubeconfig is the kubeconfig of the administrator: the user `system:admin` in the groups
	// `system:masters` and `system:cluster-admins`. It embeds its certificates.
	AdminKubeconfig string
	// MasterKubeconfig is the kubeconfig of Slipway's controllers: the user
	// `system:openshift-master` in `system:masters`.
	MasterKubeconfig string
	// ControllerManagerKubeconfig is the kubeconfig of the user `system:kube-controller-manager`.
	ControllerManagerKubeconfig string
	// SchedulerKubeconfig is the kubeconfig of the user `system:kube-scheduler`.
	SchedulerKubeconfig string

	// KubeletServer is the kubelet's serving certificate.
	KubeletServer Pair
	// NodeCA is the node's copy of the CA certificate, which verifies the kubelet's clients.
	NodeCA string
	// NodeKubeconfig is the kubeconfig of the kubelet: the user `system:node:<name>` in
	// `system:nodes`.
	NodeKubeconfig string
	// ProxyKubeconfig is the kubeconfig of the user `system:kube-proxy`.
	ProxyKubeconfig string
	// AgentKubeconfig is the kubeconfig of a node's network agent: the user `system:slipway-node`
	// in `system:slipway-nodes`. A role that is bound to this group grants the user's permissions.
	// The user is not in `system:nodes`, because the permissions of that group depend on a node's
	// name. Each of the following kubeconfigs is for one node component, whose role is bound in the
	// same way.
	AgentKubeconfig string
	// DNSKubeconfig is the kubeconfig of the DNS server: the user `system:slipway-dns` in
	// `system:slipway-dns-servers`.
	DNSKubeconfig string
	// RouterKubeconfig is the kubeconfig of the node's router: the user `system:slipway-router` in
	// `system:slipway-routers`.
	RouterKubeconfig string
	// IdlingKubeconfig is the kubeconfig of the proxy for idle services: the user
	// `system:slipway-idling` in `system:slipway-idling-proxies`.
	IdlingKubeconfig string
	// StorageKubeconfig is the kubeconfig of the driver that creates and deletes PersistentVolumes
	// on the node's own disk: the user `system:slipway-storage` in `system:slipway-storages`. The
	// kubelet and the network agent do not have this user's permissions.
	StorageKubeconfig string
}

// FilesIn returns the paths of the credentials in a directory.
func FilesIn(dir string) Files { return filesOf(Spec{Dir: dir}) }

// SharedFiles returns the paths of the files that all masters of a cluster share: authorities with
// their private keys, the service account keys, and the encryption keys for secrets. Some of the
// files might not exist.
func SharedFiles(dir string) []string {
	f := FilesIn(dir)
	paths := []string{f.ServiceCA, f.ServiceAccountKey, f.ServiceAccountPublicKey, encryptionFile(dir)}
	for _, pair := range []Pair{f.CA, f.FrontProxyCA, f.EtcdCA, f.ServiceSigner} {
		paths = append(paths, pair.Cert, pair.Key)
	}
	return paths
}

func filesOf(spec Spec) Files {
	in := func(name string) string { return filepath.Join(spec.Dir, name) }
	pair := func(name string) Pair { return Pair{Cert: in(name + ".crt"), Key: in(name + ".key")} }
	return Files{
		CA:           pair("ca"),
		FrontProxyCA: pair("frontproxy-ca"),
		EtcdCA:       pair("master.etcd-ca"),

		ServiceSigner: pair("service-signer"),
		ServiceCA:     in("service-ca.crt"),

		APIServer:               pair("master.server"),
		Registry:                pair("registry"),
		KubeletClient:           pair("master.kubelet-client"),
		FrontProxy:              pair("aggregator-front-proxy"),
		EtcdServer:              pair("etcd.server"),
		EtcdClient:              pair("master.etcd-client"),
		ServiceAccountKey:       in("serviceaccounts.private.key"),
		ServiceAccountPublicKey: in("serviceaccounts.public.key"),

		AdminKubeconfig:             spec.AdminKubeconfig,
		MasterKubeconfig:            in("openshift-master.kubeconfig"),
		ControllerManagerKubeconfig: in("kube-controller-manager.kubeconfig"),
		SchedulerKubeconfig:         in("kube-scheduler.kubeconfig"),

		KubeletServer:   pair("node/server"),
		NodeCA:          in("node/ca.crt"),
		NodeKubeconfig:  in("node/node.kubeconfig"),
		ProxyKubeconfig: in("node/kube-proxy.kubeconfig"),
		AgentKubeconfig: in("node/slipway-node.kubeconfig"),

		DNSKubeconfig:     in("node/slipway-dns.kubeconfig"),
		RouterKubeconfig:  in("node/slipway-router.kubeconfig"),
		IdlingKubeconfig:  in("node/slipway-idling.kubeconfig"),
		StorageKubeconfig: in("node/slipway-storage.kubeconfig"),
	}
}
