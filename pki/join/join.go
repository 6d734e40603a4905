// Package join contains the tokens that hosts use to join a cluster, and the messages that a
// joining host and a master exchange. Package controller/hosts stores each token's lifetime, uses
// and role. `slipway token create` sets the defaults of these properties.
package join

// Path is the API server path for joining hosts. GET returns the cluster's PEM-encoded CA
// certificate. POST accepts a Request and returns a Response. An error is a single sentence in
// plain text.
const Path = "/slipway/join"

// Request is a host's request to join.
type Request struct {
	// Token is the join token. It can be empty if the host has already joined the cluster. In this
	// case, the client certificate authenticates the host.
	Token string `json:"token"`
	// Role is the role that the host expects. If it is "", the host accepts the token's role.
	Role string `json:"role"`
	// NodeName is the name of the host's Node object. Address is the host's address.
	NodeName string `json:"nodeName"`
	Address  string `json:"address"`
	// DNSDomain is the DNS domain in the host's NodeConfig.
	DNSDomain string `json:"dnsDomain"`
	// NoRouter means that the node does not run a router and requires no router credentials.
	NoRouter bool `json:"noRouter,omitempty"`

	// The following fields are set only by a host that joins as a master. Version is the host's
	// Slipway version. PeerURL is the address at which its etcd member serves other members. Key is
	// the X25519 public key that the master uses to encrypt Response.Master.
	Version string `json:"version,omitempty"`
	PeerURL string `json:"peerURL,omitempty"`
	Key     []byte `json:"key,omitempty"`
}

// Roles of hosts. A node (RoleNode) runs pods but no control plane, and a master (RoleMaster) runs
// both.
const (
	RoleNode   = "node"
	RoleMaster = "master"
)

// Roles returns all roles.
func Roles() []string { return []string{RoleNode, RoleMaster} }

// Response describes the cluster to a joining host.
type Response struct {
	// Role is the role of the host, which is the token's role.
	Role string `json:"role"`
	// Settings is a MasterConfig with the cluster settings that nodes use.
	Settings string `json:"settings"`
	// SettingsDiffer means that the masters have different settings, for example while an
	// administrator changes them on one master after the other. A joined host does not apply them.
	SettingsDiffer bool `json:"settingsDiffer,omitempty"`
	// Masters contains the host:port addresses of the API servers.
	Masters []string `json:"masters"`
	// Registry is the host:port address of the image registry, or "".
	Registry string `json:"registry"`
	// ServiceCA is the PEM-encoded CA bundle that verifies services' certificates.
	ServiceCA string `json:"serviceCA"`
	// Master is a Master in JSON, encrypted with Seal. It is set only if Role is RoleMaster.
	Master []byte `json:"master,omitempty"`
}

// Master contains the data that a new master receives from an existing master.
type Master struct {
	// Etcd lists the etcd members, including the new member, as comma-separated NAME=URL items.
	// Name is the new member's name.
	Etcd string `json:"etcd"`
	Name string `json:"name"`
	// Files maps paths, relative to the data directory, to the contents of the private keys and
	// configuration files that the masters share.
	Files map[string][]byte `json:"files"`
}

// Group is the group of the users that node join tokens authenticate.
const Group = "system:bootstrappers:slipway:node"

// UserPrefix is the prefix of the names of users that join tokens authenticate. The token's ID
// follows the prefix.
const UserPrefix = "system:bootstrap:"
