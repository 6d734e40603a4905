package pki

import "path/filepath"

// Pair contains the absolute paths of a certificate and its private key, which are PEM files.
type Pair struct {
	Cert, Key string
}

// Files are the absolute paths of a host's credentials.
type Files struct {
	// CA signs the certificates of API server, kubelets and clients.
	CA Pair
	// FrontProxyCA signs only FrontProxy, so that no other client can act as the aggregator.
	FrontProxyCA Pair
	// EtcdCA signs only EtcdServer and EtcdClient, so that no user of the cluster can connect to
	// etcd.
	EtcdCA Pair
	// ServiceSigner signs the serving certificates of services (service-signer.crt). ServiceCA
	// verifies them: it contains the signer's certificate and the unexpired ones of earlier
	// signers.
	ServiceSigner Pair
	ServiceCA     string

	// APIServer is the API server's serving certificate (master.server.crt).
	APIServer Pair
	// Registry is the serving certificate of the image registry.
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
	// EtcdClient is the API server's client certificate for etcd. etcdctl can use it, too.
	EtcdClient Pair
	// ServiceAccountKey signs the tokens of service accounts. ServiceAccountPublicKey verifies
	// them.
	ServiceAccountKey, ServiceAccountPublicKey string

	// AdminKubeconfig is for `system:admin` in `system:masters` and `system:cluster-admins`. It
	// contains its certificates.
	AdminKubeconfig string
	// MasterKubeconfig is for `system:openshift-master` in `system:masters`: Slipway's controllers.
	MasterKubeconfig string
	// ControllerManagerKubeconfig is for `system:kube-controller-manager`.
	ControllerManagerKubeconfig string
	// SchedulerKubeconfig is for `system:kube-scheduler`.
	SchedulerKubeconfig string

	// KubeletServer is the kubelet's serving certificate.
	KubeletServer Pair
	// NodeCA is the node's copy of CA's certificate, which verifies clients of the kubelet.
	NodeCA string
	// NodeKubeconfig is for `system:node:<name>` in `system:nodes`: the kubelet.
	NodeKubeconfig string
	// ProxyKubeconfig is for `system:kube-proxy`.
	ProxyKubeconfig string
	// AgentKubeconfig is for `system:slipway-node` in `system:slipway-nodes`: the network agent of
	// a node. It is not in `system:nodes`, whose rights depend on the name of a node. A role that
	// is bound to the group has its rights. Each of the following kubeconfigs is for one component
	// of the node, with a role in the same way.
	AgentKubeconfig string
	// DNSKubeconfig is for `system:slipway-dns` in `system:slipway-dns-servers`: the DNS server.
	DNSKubeconfig string
	// RouterKubeconfig is for `system:slipway-router` in `system:slipway-routers`: the router of
	// the node.
	RouterKubeconfig string
	// IdlingKubeconfig is for `system:slipway-idling` in `system:slipway-idling-proxies`: the proxy
	// of idle services.
	IdlingKubeconfig string
	// StorageKubeconfig is for `system:slipway-storage` in `system:slipway-storages`: the driver
	// that creates and deletes PersistentVolumes on the node's own disk. The kubelet and agent have no
	// such rights.
	StorageKubeconfig string
}

// FilesIn returns the paths of the credentials in a directory.
func FilesIn(dir string) Files { return filesOf(Spec{Dir: dir}) }

// SharedFiles returns the paths of the files that all masters of a cluster have in common:
// authorities with their private keys, the keys of service accounts, and the keys that encrypt
// secrets. Not all need to exist.
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
