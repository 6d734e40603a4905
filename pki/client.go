package pki

// NodeClient describes an API server client that each node has in addition to the kubelet.
type NodeClient struct {
	// Name is the first part of the client's file names.
	Name string
	// User and Groups are the subject of the client's certificate.
	User   string
	Groups []string
	// Kubeconfig returns the path of the client's kubeconfig.
	Kubeconfig func(Files) string
}

// RouterUser is the user name of routers. A router has permission to read the private keys of all
// routes.
const RouterUser = "system:slipway-router"

// NodeClients returns a node's clients, except the kubelet.
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
