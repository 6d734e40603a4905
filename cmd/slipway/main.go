// Command slipway is the whole platform in one program: the supervisor of a host, the processes
// below it, and, also under the names oc and kubectl, the client.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/cli"
	"github.com/slipway-platform/slipway/internal/redact"
	"github.com/slipway-platform/slipway/platform"
)

func main() {
	name := filepath.Base(os.Args[0])
	if err := run(name, os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, redact.Text(err.Error()))
		os.Exit(1)
	}
}

// run is what the program is under a name.
func run(name string, args []string) error {
	switch name {
	case "oc", "kubectl":
		return cli.Run(name, args)
	}
	return platform.Command(cli.New("oc"), cli.New("kubectl")).Execute()
}
