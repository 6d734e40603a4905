// Command slipway-deployer runs in deployer pods. It is a small, separate program because each
// deployment starts it. See package deployer.
package main

import "github.com/slipway-platform/slipway/apigroup/apps/deployer"

func main() { deployer.Main() }
