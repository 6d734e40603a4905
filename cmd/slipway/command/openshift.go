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

// NewOpenShift returns the command line of OpenShift 3's program `openshift`, whose verbs run verbs
// of slipway and oc. client runs the client with a name, such as oc.
func NewOpenShift(client func(name string, args []string) error) *cobra.Command {
	root := &cobra.Command{
		Use: "openshift", Short: "The verbs of OpenShift 3's program, as other names of verbs of slipway and oc",
		SilenceUsage: true, SilenceErrors: true,
	}
	version := versionCommand()
	version.GroupID = ""
	root.AddCommand(startCommand(), version,
		&cobra.Command{
			Use: "cli", Short: "Run oc", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return client("oc", args) },
		},
		&cobra.Command{
			Use: "admin", Aliases: []string{"adm"}, Short: "Run oc adm", DisableFlagParsing: true,
			RunE: func(_ *cobra.Command, args []string) error { return client("oc", append([]string{"adm"}, args...)) },
		})
	return root
}

func startCommand() *cobra.Command {
	opts, settings := &options{}, config.StartSettings{}
	roles := []string{"", "master", "node"}
	command := &cobra.Command{
		Use:   "start [master|node]",
		Short: "Run the cluster in the foreground: `slipway run`",
		Long: "Run the cluster in the foreground, as `slipway run` does. The first start writes the settings of its flags to\n" +
			"master-config.yaml. A host always runs all parts that its configuration contains, with or without `master` or `node`.",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if role := strings.Join(args, ""); !slices.Contains(roles, role) {
				return fmt.Errorf("start %q: the argument must be master or node", role)
			}
			flagged := settings.PublicMaster != "" || len(settings.CORSAllowedOrigins) > 0
			if opts.file != "" && flagged {
				return errors.New("--config excludes --public-master and --cors-allowed-origins; set masterPublicURL and corsAllowedOrigins in the file")
			}
			if opts.file == "" {
				if err := settings.Write(opts.dataDir); err != nil {
					return err
				}
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			return run(ctx, opts, false)
		},
	}
	dataDir := os.Getenv("SLIPWAY_DATA_DIR")
	if dataDir == "" {
		dataDir = config.UsualDataDir
	}
	flags := command.Flags()
	flags.StringVar(&opts.dataDir, "data-dir", dataDir, "directory of all data of this host (environment: SLIPWAY_DATA_DIR)")
	flags.StringVar(&opts.file, "config", "", "configuration file to use instead of those in the data directory (MasterConfig, NodeConfig or both)")
	flags.StringVar(&settings.PublicMaster, "public-master", "", "address of the API server for clients outside: masterPublicURL")
	flags.StringSliceVar(&settings.CORSAllowedOrigins, "cors-allowed-origins", nil, "origins of other web applications: corsAllowedOrigins")
	return command
}
