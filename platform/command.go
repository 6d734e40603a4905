package platform

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/kube"
)

// DefaultDataDir is where a host keeps everything unless told otherwise.
const DefaultDataDir = config.UsualDataDir

// options are the flags that every command has.
type options struct {
	dataDir string
	file    string
}

// load reads the configuration of the host.
func (o *options) load() (*host, error) {
	c, err := config.Load(o.dataDir, o.file)
	if err != nil {
		return nil, err
	}
	return newHost(c, o.file)
}

// look is load for commands that only look at a host: one whose configuration was damaged while it runs still answers. What is wrong with it goes to out.
func (o *options) look(out io.Writer) (*host, error) {
	c, err := config.LoadAnyway(o.dataDir, o.file)
	if c == nil {
		return nil, err
	}
	if err != nil {
		fmt.Fprintf(out, "The configuration cannot be used for a start:\n%v\n\n", err)
	}
	return newHost(c, o.file)
}

// Command is the program's command line. clients are added below it: `oc` and `kubectl`.
func Command(clients ...*cobra.Command) *cobra.Command {
	dataDir := os.Getenv("SLIPWAY_DATA_DIR")
	if dataDir == "" {
		dataDir = DefaultDataDir
	}
	opts := &options{}
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "An OpenShift-3-compatible container platform in one program",
		Version:       fmt.Sprintf("%s (Kubernetes %s)", version.Slipway(), kube.Version()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// Kubernetes registers a flag of this name for all programs that link it; this one is found first.
	root.Flags().Bool("version", false, "print the version")
	root.AddGroup(
		&cobra.Group{ID: "host", Title: "This host:"},
		&cobra.Group{ID: "look", Title: "Look at it:"},
		&cobra.Group{ID: "client", Title: "Use the cluster:"},
	)
	own := []*cobra.Command{
		upCommand(opts), runCommand(opts), downCommand(opts),
		statusCommand(opts), partsCommand(opts), logsCommand(opts), configCommand(opts), imagesCommand(opts), flexvolumeCommand(opts), csiCommand(), routerCommand(), ipfailoverCommand(), registryCommand(), htpasswdCommand(opts), encryptionCommand(opts), certificatesCommand(opts),
		deployCommand(),
		controlPlaneCommand(opts), nodeCommand(opts),
	}
	for _, command := range own {
		command.PersistentFlags().StringVar(&opts.dataDir, "data-dir", dataDir, "directory that holds everything of this host (environment: SLIPWAY_DATA_DIR)")
		command.PersistentFlags().StringVar(&opts.file, "config", "", "configuration file to use in place of the data directory's (MasterConfig, NodeConfig or both)")
	}
	root.AddCommand(own...)
	for _, client := range clients {
		client.GroupID = "client"
		root.AddCommand(client)
	}
	return root
}

func configCommand(opts *options) *cobra.Command {
	view := &cobra.Command{
		Use:   "view",
		Short: "Print the effective configuration: the files and every default",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := config.Load(opts.dataDir, opts.file)
			if err != nil {
				return err
			}
			text, err := c.View()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	command := &cobra.Command{Use: "config", Short: "Look at the configuration", GroupID: "look"}
	command.AddCommand(view)
	return command
}
