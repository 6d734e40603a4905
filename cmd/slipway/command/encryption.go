package command

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/pki"
)

// encryptionCommand returns the command that manages the keys that encrypt secrets.
func encryptionCommand(opts *options) *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key and use it for encryption",
		Long: `Add a key and use it for encryption. The API server reads it within a minute. The control plane then stores all objects with secrets again, in the
background. It is complete when both commands print the same:

  slipway oc get configmap slipway-encryption -n kube-system -o jsonpath={.data.version}
  sha256sum <data>/pki/encryption.yaml

The old keys stay in the file. Keep them as long as you have backups that need them. To revoke a stolen key, remove it from the file afterwards.

With several API servers, copy the file to all of them before the first one reads it: add the key as the second one of the list, distribute the file, and
then make it the first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			if h.SeveralMasters() {
				return errors.New("the cluster has several masters: the command would change the file of this one only; edit pki/encryption.yaml on all masters instead, as `slipway encryption rotate --help` describes")
			}
			if err := pki.RotateEncryption(h.PKIDir()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Added a key. The API server uses it within a minute.")
			return nil
		},
	}
	command := &cobra.Command{Use: "encryption", Short: "Manage the keys that encrypt secrets", GroupID: "host"}
	command.AddCommand(rotate)
	return command
}
