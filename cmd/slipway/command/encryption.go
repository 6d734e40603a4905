package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/pki"
)

// encryptionCommand manages the keys with which secrets are stored.
func encryptionCommand(opts *options) *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key that encrypts from now on",
		Long: `Add a key that encrypts from now on. The API server reads it within a minute. The control plane then stores all objects with secrets again, in the
background. It is done when both of these are the same:

  slipway oc get configmap slipway-encryption -n kube-system -o jsonpath={.data.version}
  sha256sum <data>/pki/encryption.yaml

The old keys stay in the file. Keep them as long as there are backups from their time. To end a key that was stolen, remove it from the file afterwards.

With several API servers, copy the file to all of them before the first one reads it: add the key as the second one of the list, distribute the file, and
then make it the first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			if err := pki.RotateEncryption(h.PKIDir()); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "There is a new key. The API server uses it within a minute.")
			return nil
		},
	}
	command := &cobra.Command{Use: "encryption", Short: "Manage the keys that secrets are stored with", GroupID: "host"}
	command.AddCommand(rotate)
	return command
}
