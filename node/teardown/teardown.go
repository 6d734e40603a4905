// Package teardown takes away what a node has left on its host: pods, processes, mounts and cgroups. It is what `slipway down` does
// besides ending slipway's own processes and removing the network.
//
// Each function can be called again, also when a part of its work is done already, or never was to be done. Each does
// all it can, and returns one error for every thing that remains, saying who holds it and what to do. The order that works is Pods (while containerd
// runs), then, with slipway's processes ended, Processes, Mounts, Cgroups.
package teardown
