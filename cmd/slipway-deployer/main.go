// Command slipway-deployer is what deployer pods run. It is a program of its own because each
// deployment starts it, and slipway is too large for that. See package deployer.
package main

import "github.com/slipway-platform/slipway/apigroup/apps/deployer"

func main() { deployer.Main() }
