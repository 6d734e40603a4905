package pki

import "path/filepath"

// Pair is a certificate and its private key, absolute paths of PEM files.
type Pair struct {
	Cert, Key string
}

// Files are the absolute paths of a host's identity.
type Files struct {
	// CA signs the certificates of API server, kubelets and clients.
	CA Pair
	// FrontProxyCA signs FrontProxy alone, so that no other client can pretend to be the aggregator.
	FrontProxyCA Pair
	// EtcdCA signs EtcdServer and EtcdClient alone, so that no cluster user can open the store.
	EtcdCA Pair
	// ServiceSigner signs the serving certificates of services (service-signer.crt), and ServiceCA is what verifies them: its
	// certificate and those of its predecessors that have not ended.
	ServiceSigner Pair
	ServiceCA     string

	// APIServer is the API server's serving certificate (master.server.crt).
	APIServer Pair
	// Registry is the serving certificate of the image registry.
	Registry Pair
	// KubeletClient is the API server's identity towards kubelets: `system:openshift-node-admin` in
	// `system:node-admins`, as in OpenShift 3.
	KubeletClient Pair
	// FrontProxy is the aggregator's identity towards aggregated API servers, `front-proxy-client`.
	FrontProxy Pair
	// EtcdServer is what etcd shows to clients and, as a client and as a server, to its peers.
	EtcdServer Pair
	// EtcdClient is the API server's identity towards etcd, also for etcdctl.
	EtcdClient Pair
	// ServiceAccountKey signs the tokens of service accounts and ServiceAccountPublicKey verifies them.
	ServiceAccountKey, ServiceAccountPublicKey string

	// AdminKubeconfig is `system:admin`, in `system:masters` and `system:cluster-admins`; its
	// certificates are inside.
	AdminKubeconfig string
	// MasterKubeconfig is `system:openshift-master`, in `system:masters`: our own controllers.
	MasterKubeconfig string
	// ControllerManagerKubeconfig is `system:kube-controller-manager`.
	ControllerManagerKubeconfig string
	// SchedulerKubeconfig is `system:kube-scheduler`.
	SchedulerKubeconfig string

	// KubeletServer is the kubelet's serving certificate.
	KubeletServer Pair
	// NodeCA is the node's copy of the certificate of CA, which verifies clients of the kubelet.
	NodeCA string
	// NodeKubeconfig is `system:node:<name>`, in `system:nodes`: the kubelet.
	NodeKubeconfig string
	// ProxyKubeconfig is `system:kube-proxy`.
	ProxyKubeconfig string
	// AgentKubeconfig is `system:slipway-node`, in `system:slipway-nodes`: the network agent of a
	// node. It is not in `system:nodes`, whose rights go by the name of a node; what it may do is a
	// role that is bound to the group. The following are for one part of the node each and have
	// their roles in the same way.
	AgentKubeconfig string
	// DNSKubeconfig is `system:slipway-dns`, in `system:slipway-dns-servers`: the DNS server.
	DNSKubeconfig string
	// RouterKubeconfig is `system:slipway-router`, in `system:slipway-routers`: the router of the
	// node.
	RouterKubeconfig string
	// IdlingKubeconfig is `system:slipway-idling`, in `system:slipway-idling-proxies`: the proxy of
	// idle services.
	IdlingKubeconfig string
	// StorageKubeconfig is `system:slipway-storage`, in `system:slipway-storages`: what makes and deletes PersistentVolumes of the
	// node's own disk. The kubelet and the agent must not.
	StorageKubeconfig string
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
