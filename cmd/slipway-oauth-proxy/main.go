// Command slipway-oauth-proxy is the sidecar in the openshift3/oauth-proxy image. It is a small,
// separate program because each pod with the sidecar runs it. See package proxy.
package main

import "github.com/slipway-platform/slipway/oauth/proxy"

func main() { proxy.Main() }
