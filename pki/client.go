package pki

// NodeClient is a client of the API server that each node has, in addition to the kubelet.
type NodeClient struct {
	// Name is the first part of its file names.
	Name string
	// User and Groups are the subject of its certificate.
	User   string
	Groups []string
	// Kubeconfig returns the path of its kubeconfig.
	Kubeconfig func(Files) string
}

// RouterUser is the user of routers, which read the private keys of all routes.
const RouterUser = "system:slipway-router"

// NodeClients lists the clients of each node, except the kubelet.
func NodeClients() []NodeClient {
	return []NodeClient{
		{"kube-proxy", "system:kube-proxy", nil, func(f Files) string { return f.ProxyKubeconfig }},
		{"slipway-node", "system:slipway-node", []string{"system:slipway-nodes"}, func(f Files) string { return f.AgentKubeconfig }},
		{"slipway-dns", "system:slipway-dns", []string{"system:slipway-dns-servers"}, func(f Files) string { return f.DNSKubeconfig }},
		{"slipway-router", RouterUser, []string{"system:slipway-routers"}, func(f Files) string { return f.RouterKubeconfig }},
		{"slipway-idling", "system:slipway-idling", []string{"system:slipway-idling-proxies"}, func(f Files) string { return f.IdlingKubeconfig }},
		{"slipway-storage", "system:slipway-storage", []string{StorageGroup}, func(f Files) string { return f.StorageKubeconfig }},
	}
}
