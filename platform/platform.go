// Package platform is the composition root: it says which parts a host runs, in which process, and
// what each waits for; starts them, watches them, starts them again, and tells people about it.
//
// A host runs a supervisor (`slipway run`) and three processes below it: the control plane, containerd
// and the node. Kubelet and the service proxy end their process on some errors, which must not end
// etcd; containerd is a program of its own. The tables are in parts.go.
package platform
