// Package platform is the composition root. It contains tables of the components that run in each
// of a host's processes, and creates each component from the configuration. The folder of each
// feature implements the feature's components.
//
// A host runs a supervisor (`slipway run`) and three processes: the control plane, containerd and
// the node. The node has its own process because the kubelet and the service proxy exit on some
// errors, which must not stop etcd. containerd is a separate program. The tables are in
// controlplane.go and node.go.
package platform
