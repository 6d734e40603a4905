package command

import (
	"fmt"

	"github.com/spf13/cobra"
)

// certificatesCommand returns the command that manages this host's certificates.
func certificatesCommand(opts *options) *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Replace the keys and certificates of this host",
		Long: `Replace the keys and certificates of this host while it runs, for instance because a key was copied. The platform's servers and clients
load the new ones within five minutes. Requests are not interrupted.

Authorities, the key that signs service account tokens, and certificates that you configured are not replaced. Previous certificates remain
valid until they expire: they are not revoked.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			count, dir, err := h.ReplaceKeys()
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Issued %d certificates and kubeconfigs with new keys in %s.\n", count, dir)
			return nil
		},
	}
	command := &cobra.Command{Use: "certificates", Short: "Manage the certificates of this host", GroupID: "host"}
	command.AddCommand(rotate)
	return command
}
