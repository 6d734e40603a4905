package command

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/vrrp"
)

// ipfailoverCommand returns the command that runs in the pods of `oc adm ipfailover`. It executes
// keepalived.
func ipfailoverCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "ipfailover",
		Short: "Share virtual addresses with other hosts",
		Long: "Share virtual addresses with other hosts, with keepalived. The command runs in the pods of `oc adm ipfailover`, on the host network.\n" +
			"The environment variables of OpenShift 3, such as OPENSHIFT_HA_VIRTUAL_IPS, configure it.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := vrrp.Read(os.LookupEnv)
			if err != nil {
				return err
			}
			programs, err := vrrp.FindPrograms()
			if err != nil {
				return err
			}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			args, err := settings.Prepare(cmd.Context(), absolute, programs)
			if err != nil {
				return err
			}
			if err := syscall.Exec(args[0], args, os.Environ()); err != nil {
				return fmt.Errorf("start %q: %w", args[0], err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&dir, "working-dir", "/var/lib/keepalived", "directory for keepalived's configuration")
	return command
}
