// Command slipway is the whole platform in one program: a host's supervisor and processes, and the
// clients oc and kubectl, which run if the program is invoked under their names. If it is invoked
// as openshift, oadm, hyperkube, master-restart, etcdctl or etcdutl, it behaves like the program of
// that name.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cli"
	"github.com/slipway-platform/slipway/cmd/slipway/command"
	"github.com/slipway-platform/slipway/internal/redact"
)

func main() {
	name := filepath.Base(os.Args[0])
	if err := run(name, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, redact.Text(err.Error()))
		os.Exit(1)
	}
}

// run runs the program under the given command name.
func run(name string, args []string) error {
	cobra.EnablePrefixMatching = false // etcdctl's package enables it
	switch name {
	case "oc", "kubectl":
		return cli.Run(name, args)
	case "oadm":
		return cli.Run("oc", append([]string{"adm"}, args...))
	case "openshift":
		return command.NewOpenShift(cli.Run).Execute()
	case "hyperkube":
		return command.NewHyperkube(cli.Run).Execute()
	case "descheduler":
		return command.NewDescheduler().Execute()
	}
	slipway := command.New(cli.New("oc"), cli.New("kubectl"))
	if name == "master-restart" || name == "etcdctl" || name == "etcdutl" {
		slipway.SetArgs(append([]string{name}, args...))
	}
	return slipway.Execute()
}
