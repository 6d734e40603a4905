// Package teardown removes the remains of a node from its host: pods, processes, mounts and
// cgroups. `slipway down` uses it after it has ended Slipway's own processes, and also removes the
// network.
//
// Each function can be called repeatedly, even if its work is partly or completely done. Each does
// as much as possible, and returns an error for every object that remains, with its users and the
// remedy. Call Pods while containerd runs; then end Slipway's processes, and call Processes, Mounts
// and Cgroups in this order.
package teardown
