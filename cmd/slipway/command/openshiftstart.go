package command

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/config"
)

// start contains the state of `openshift start` and its subcommands.
type start struct {
	options
	settings config.StartSettings
}

func startCommand() *cobra.Command {
	s := &start{}
	command := &cobra.Command{
		Use:   "start",
		Short: "Start OpenShift components, as `slipway run` does",
		Long: "Start OpenShift components in the foreground, as `slipway run` does. The first start writes the settings of its flags to\n" +
			"master-config.yaml. A host always runs all components that its configuration contains, with or without `master` or `node`.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("start %q: the argument must be master or node", args[0])
			}
			return nil
		},
		RunE: s.run,
	}
	command.AddCommand(
		&cobra.Command{
			Use: "master", Short: "Start a master", Args: cobra.NoArgs, RunE: s.run,
			Long: "Start a master, and the node of this host if its configuration contains one. Without a configuration, this writes the default one.",
		},
		&cobra.Command{
			Use: "node", Short: "Start a node", Args: cobra.NoArgs, RunE: s.run,
			Long: "Start this host's node, and its master if the configuration contains one.",
		},
		startNetwork(&s.file))
	dataDir := os.Getenv("SLIPWAY_DATA_DIR")
	if dataDir == "" {
		dataDir = config.UsualDataDir
	}
	flags := command.PersistentFlags()
	flags.StringVar(&s.dataDir, "data-dir", dataDir, "directory for all data of this host (environment: SLIPWAY_DATA_DIR)")
	flags.StringVar(&s.file, "config", "", "configuration file to use instead of the files in the data directory (MasterConfig, NodeConfig or both)")
	flags.StringVar(&s.settings.PublicMaster, "public-master", "", "address of the API server for clients outside: masterPublicURL")
	flags.StringSliceVar(&s.settings.CORSAllowedOrigins, "cors-allowed-origins", nil, "origins of other web applications: corsAllowedOrigins")
	return command
}

func (s *start) run(cmd *cobra.Command, _ []string) error {
	flagged := s.settings.PublicMaster != "" || len(s.settings.CORSAllowedOrigins) > 0
	if s.file != "" && flagged {
		return errors.New("--config cannot be used with --public-master or --cors-allowed-origins; set masterPublicURL or corsAllowedOrigins in the file")
	}
	if s.file == "" {
		if err := s.settings.Write(s.dataDir); err != nil {
			return err
		}
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	return run(ctx, &s.options, false)
}

// networkParts contains the components of OpenShift 3's `openshift start network`.
var networkParts = []string{"dns", "plugins", "proxy"}

// startNetwork returns `openshift start network`. OpenShift 3.11 runs this command in a pod, next
// to a separate kubelet. In Slipway, the node process contains the network. Therefore, the command
// only checks its flags, and then returns an error that contains the command for starting both the
// kubelet and the network.
func startNetwork(file *string) *cobra.Command {
	var enable, disable []string
	command := &cobra.Command{
		Use: "network", Short: "Start node network", Args: cobra.NoArgs,
		Long: "Start node network. The network is in the node's process, with the kubelet, and does not start alone: use `openshift start node`.",
		RunE: func(*cobra.Command, []string) error {
			if *file == "" {
				return errors.New("you must specify a configuration file with --config")
			}
			unknown := slices.DeleteFunc(slices.Concat(enable, disable), func(name string) bool { return slices.Contains(networkParts, name) })
			if len(unknown) > 0 {
				return fmt.Errorf("the following components are not recognized: %s", strings.Join(unknown, ", "))
			}
			remaining := slices.DeleteFunc(enable, func(name string) bool { return slices.Contains(disable, name) })
			if len(remaining) == 0 {
				return fmt.Errorf("at least one node component must be enabled (%s)", strings.Join(networkParts, ", "))
			}
			return fmt.Errorf("the network runs in the process of the node, with the kubelet; use: openshift start node --config=%s", *file)
		},
	}
	command.Flags().StringSliceVar(&enable, "enable", slices.Clone(networkParts), "components to start")
	command.Flags().StringSliceVar(&disable, "disable", nil, "components not to start")
	return command
}
