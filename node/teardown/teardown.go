// Package teardown removes the remains of a node from its host: pods, processes, mounts and
// cgroups. `slipway down` uses this package after it has stopped Slipway's own processes. The
// command also removes the network.
//
// Each function can be called repeatedly, even if its work is already partly or completely done.
// Each function does as much as possible, and returns an error for every object that remains, with
// the object's users and a remedy. Call Pods while containerd is running. Then stop Slipway's
// processes, and call Processes, Mounts and Cgroups in this order.
package teardown
