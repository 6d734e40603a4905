// Command oc is the client of a cluster, on its own, for every system that people work at.
package main

import (
	"os"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli"
)

func main() {
	cmdutil.CheckErr(cli.Run("oc", os.Args[1:]))
}
