// Command slipway-oauth-proxy is the sidecar of the image openshift3/oauth-proxy. It is a small,
// separate program because it runs in each pod that uses it. See package proxy.
package main

import "github.com/slipway-platform/slipway/oauth/proxy"

func main() { proxy.Main() }
