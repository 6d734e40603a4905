// Package command contains the verbs of the slipway command line, each in its own file.
package command

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/host"
)

// options contains the flags that all verbs share.
type options struct {
	dataDir string
	file    string
}

// load reads this host's configuration.
func (o *options) load() (*host.Host, error) { return host.Load(o.dataDir, o.file) }

// loadMaster works like load, for verbs that require a control plane on this host.
func (o *options) loadMaster() (*host.Host, error) {
	h, err := o.load()
	if err == nil && h.Joined() {
		return nil, errors.New("this host is only a node; run the command on a master")
	}
	return h, err
}

// loadInvalid works like load, for verbs that only read. It accepts a configuration that became
// invalid while the host was running, and prints the configuration's errors to out.
func (o *options) loadInvalid(out io.Writer) (*host.Host, error) {
	c, err := config.LoadAnyway(o.dataDir, o.file)
	if c == nil {
		return nil, err
	}
	if err != nil && os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: %w", errNotRoot, err)
	}
	if err != nil {
		fmt.Fprintf(out, "Slipway cannot start with this configuration:\n%v\n\n", err)
	}
	return host.New(c, o.file)
}

// New returns the command line. It adds clients, the commands `oc` and `kubectl`, as verbs.
func New(clients ...*cobra.Command) *cobra.Command {
	dataDir := os.Getenv("SLIPWAY_DATA_DIR")
	if dataDir == "" {
		dataDir = config.UsualDataDir
	}
	opts := &options{}
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "An OpenShift-3-compatible container platform in one program",
		Version:       fmt.Sprintf("%s (Kubernetes %s)", version.Slipway(), kube.Version()),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	// This flag takes precedence over the global flag of the same name that Kubernetes registers.
	root.Flags().Bool("version", false, "print the version")
	root.AddGroup(
		&cobra.Group{ID: "host", Title: "This host:"},
		&cobra.Group{ID: "look", Title: "Inspect it:"},
		&cobra.Group{ID: "client", Title: "Use the cluster:"},
	)
	for _, verb := range verbs(opts) {
		flags := verb.PersistentFlags()
		flags.StringVar(&opts.dataDir, "data-dir", dataDir, "directory for all data of this host (environment: SLIPWAY_DATA_DIR)")
		flags.StringVar(&opts.file, "config", "", "configuration file to use instead of the files in the data directory (MasterConfig, NodeConfig or both)")
		root.AddCommand(verb)
	}
	for _, client := range clients {
		client.GroupID = "client"
		root.AddCommand(client)
	}
	return root
}

// verbs lists all verbs.
func verbs(opts *options) []*cobra.Command {
	return []*cobra.Command{
		upCommand(opts),
		runCommand(opts),
		downCommand(opts),
		installCommand(opts),
		uninstallCommand(opts),
		tokenCommand(opts),
		etcdCommand(opts),
		lbCommand(opts),
		backupCommand(opts),
		restoreCommand(opts),
		masterRestartCommand(opts),
		masterCommand(opts),
		leaveCommand(opts),
		upgradeCommand(opts),
		etcdctlCommand(opts),
		etcdutlCommand(opts),
		statusCommand(opts),
		componentsCommand(opts),
		pathsCommand(opts),
		logsCommand(opts),
		supportCommand(opts),
		debugCommand(opts),
		networkCommand(opts),
		metricsCommand(),
		versionCommand(),
		configCommand(opts),
		imagesCommand(opts),
		storageCommand(opts),
		samplesCommand(opts),
		catalogCommand(opts),
		flexvolumeCommand(opts),
		csiCommand(opts),
		routerCommand(),
		ipfailoverCommand(),
		NewDescheduler(),
		registryCommand(),
		htpasswdCommand(opts),
		encryptionCommand(opts),
		certificatesCommand(opts),
		deployCommand(),
		controlPlaneCommand(opts),
		nodeCommand(opts),
		containerdCommand(opts),
	}
}
