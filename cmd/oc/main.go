// Command oc is the client for a cluster. It is a separate program, so that it can be built for all
// supported operating systems.
package main

import (
	"os"

	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli"
)

func main() {
	cmdutil.CheckErr(cli.Run("oc", os.Args[1:]))
}
