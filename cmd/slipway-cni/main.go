// Command slipway-cni is Slipway's CNI plugin. It is a small, separate program because the
// container runtime starts it for every pod. See package network/cni.
package main

import "github.com/slipway-platform/slipway/network/cni"

func main() { cni.Main() }
