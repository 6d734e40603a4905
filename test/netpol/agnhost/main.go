// Command agnhost implements the part of Kubernetes' agnhost program that Kubernetes' network
// policy tests use: servers on a pod's ports, and a client for them.
package main

import (
	"os"

	"github.com/spf13/cobra"
	"k8s.io/kubernetes/test/images/agnhost/connect"
	"k8s.io/kubernetes/test/images/agnhost/porter"
)

func main() {
	root := &cobra.Command{Use: "agnhost"}
	root.AddCommand(connect.CmdConnect, porter.CmdPorter)
	if root.Execute() != nil {
		os.Exit(1)
	}
}
