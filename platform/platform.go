// Package platform is the composition root: tables of the components that run in each process of a
// host, and how each is created from the configuration. What a component does is in the folder of
// its feature.
//
// A host runs a supervisor (`slipway run`) and three processes: the control plane, containerd and
// the node. The kubelet and the service proxy end their process on some errors, which must not end
// etcd; containerd is a separate program. The tables are in controlplane.go and node.go.
package platform
