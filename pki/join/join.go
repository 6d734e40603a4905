// Package join contains the tokens with which a host joins a cluster, and the messages between the
// host and a master.
package join

// Path is the path of the API server at which hosts join. GET returns the cluster's certificate
// authority in PEM. POST accepts a Request and returns a Response. An error is one sentence of
// plain text.
const Path = "/slipway/join"

// Request is the request of a host to join.
type Request struct {
	Token string `json:"token"`
	// Role is the role that the host expects; "" accepts the role of the token.
	Role string `json:"role"`
	// NodeName is the name of the host's Node, and Address its address.
	NodeName string `json:"nodeName"`
	Address  string `json:"address"`
	// DNSDomain is the DNS domain in the host's NodeConfig.
	DNSDomain string `json:"dnsDomain"`
	// NoRouter means that a node runs no router, and gets no credentials of one.
	NoRouter bool `json:"noRouter,omitempty"`

	// A host that joins as a master also sends the following fields. Version is its version of
	// slipway, and PeerURL the address at which its etcd serves other members. Key is the public key
	// (X25519) for which the master encrypts Response.Master.
	Version string `json:"version,omitempty"`
	PeerURL string `json:"peerURL,omitempty"`
	Key     []byte `json:"key,omitempty"`
}

// The roles of hosts: RoleNode runs pods and no control plane, RoleMaster both.
const (
	RoleNode   = "node"
	RoleMaster = "master"
)

// Roles returns all roles.
func Roles() []string { return []string{RoleNode, RoleMaster} }

// Response describes the cluster to a joining host.
type Response struct {
	// Role is the role of the token, which the host gets.
	Role string `json:"role"`
	// Settings is a MasterConfig with the settings of the cluster that its nodes use.
	Settings string `json:"settings"`
	// Masters are the host:port addresses of the API servers.
	Masters []string `json:"masters"`
	// Registry is the host:port address of the image registry, or "".
	Registry string `json:"registry"`
	// ServiceCA verifies the certificates of services, in PEM.
	ServiceCA string `json:"serviceCA"`
	// Master is a Master as JSON, sealed with Seal; only for the role RoleMaster.
	Master []byte `json:"master,omitempty"`
}

// Master contains the data that a new master gets from the others.
type Master struct {
	// Etcd lists the members of etcd as NAME=URL, separated by commas, with the new one. Name is the
	// name of the new one.
	Etcd string `json:"etcd"`
	Name string `json:"name"`
	// Files are the private keys that masters share, and their configuration, by paths relative to
	// the data directory.
	Files map[string][]byte `json:"files"`
}

// Group is the group of the users of join tokens for nodes.
const Group = "system:bootstrappers:slipway:node"

// UserPrefix begins the names of the users of join tokens. Their ID follows.
const UserPrefix = "system:bootstrap:"
