package command

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/metrics"
	"github.com/slipway-platform/slipway/storage/csi/register"
)

func csiNodeCommand(opts *options) *cobra.Command {
	var (
		flags        csiFlags
		endpoint     string
		registration string
	)
	command := &cobra.Command{
		Use:   "node --csi-address SOCKET --kubelet-registration-path PATH",
		Short: "Register a driver with the kubelet of this node and report its health",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(flags.addresses) != 1 {
				return fmt.Errorf("register CSI driver: set --csi-address once, not %d times", len(flags.addresses))
			}
			if endpoint == "" {
				endpoint = filepath.Clean("/" + trimScheme(flags.addresses[0]))
			}
			if registration == "" {
				dir, err := opts.kubeletDir()
				if err != nil {
					return err
				}
				registration = filepath.Join(dir, "plugins_registry")
			}
			collector := metrics.New()
			connection, err := driver.Dial(flags.addresses[0], driver.Options{Timeout: flags.timeout, Observe: collector.Observe})
			if err != nil {
				return err
			}
			defer connection.Close()
			components, closeAll, err := flags.httpComponents(collector)
			if err != nil {
				return err
			}
			defer closeAll()
			registrar := &register.Registrar{Driver: connection, Endpoint: endpoint, Dir: registration}
			return runForeground(cmd.Context(), append(components, registrar)...)
		},
	}
	set := command.Flags()
	flags.add(set)
	set.StringVar(&endpoint, "kubelet-registration-path", "", "the driver's socket as the kubelet sees it; the default is the address")
	set.StringVar(&registration, "registration-dir", "",
		"the kubelet's directory plugins_registry as this process sees it; the default is the platform's directory on this host, or else in "+usualKubeletDir)
	return command
}
