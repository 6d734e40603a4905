// Command slipway-egress-router runs in egress router pods. It is a small, separate program because
// it is all that the images of these pods contain. See package egressrouter.
package main

import "github.com/slipway-platform/slipway/network/egressrouter"

func main() { egressrouter.Main() }
