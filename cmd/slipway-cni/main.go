// Command slipway-cni is Slipway's CNI plugin. The container runtime starts it for every pod, so it
// is a program of its own and small. See package network/cni.
package main

import "github.com/slipway-platform/slipway/network/cni"

func main() { cni.Main() }
