// Command slipway-egress-router runs in egress router pods. It is a small, separate program because
// these pods' images contain nothing else. See package egressrouter.
package main

import "github.com/slipway-platform/slipway/network/egressrouter"

func main() { egressrouter.Main() }
