package platform

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/network/vrrp"
)

// findKeepalived finds keepalived and the programs that it and its scripts use; bash may be missing.
func findKeepalived() ([]string, error) {
	var found []string
	for _, name := range []string{"keepalived", "nft", "bash"} {
		program, there := findProgram(name)
		if !there && name != "bash" {
			return nil, fmt.Errorf("addresses are not shared, since this machine has no %s; run: apt-get install keepalived nftables", name)
		}
		if there {
			found = append(found, program)
		}
	}
	return found, nil
}

// ipfailoverCommand is what the pods of `oc adm ipfailover` run: it becomes keepalived.
func ipfailoverCommand() *cobra.Command {
	var dir string
	command := &cobra.Command{
		Use:   "ipfailover",
		Short: "Share virtual addresses with other hosts",
		Long: "Share virtual addresses with other hosts, with keepalived. It is configured by the environment variables of OpenShift 3, such as\n" +
			"OPENSHIFT_HA_VIRTUAL_IPS, and runs in the pods of `oc adm ipfailover`, on the host network.",
		GroupID: "host",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := vrrp.Read(os.LookupEnv)
			if err != nil {
				return err
			}
			var use vrrp.Programs
			for name, path := range map[string]*string{"keepalived": &use.Keepalived, "nft": &use.Nft, "nc": &use.Netcat} {
				program, there := findProgram(name)
				if !there {
					err = errors.Join(err, fmt.Errorf("find program %q: it is not there", name))
				}
				*path = program
			}
			if err != nil {
				return err
			}
			absolute, err := filepath.Abs(dir)
			if err != nil {
				return err
			}
			line, err := settings.Prepare(cmd.Context(), absolute, use)
			if err != nil {
				return err
			}
			if err := syscall.Exec(line[0], line, os.Environ()); err != nil {
				return fmt.Errorf("start %q: %w", line[0], err)
			}
			return nil
		},
	}
	command.Flags().StringVar(&dir, "working-dir", "/var/lib/keepalived", "directory for keepalived's configuration")
	return command
}
