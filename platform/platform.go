// Package platform is the composition root. It runs a host's processes. Package controlplane lists
// the components of the control plane and creates them from the configuration. Package nodeprocess
// does the same for the node. The packages in each feature's folder implement its components.
//
// A host runs a supervisor (`slipway run`) and three processes: the control plane, containerd and
// the node. The node has its own process because the kubelet and the service proxy exit on some
// errors, which must not stop etcd. containerd is a separate program.
package platform
