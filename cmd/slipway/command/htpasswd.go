package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/oauth/idp/htpasswd"
)

// htpasswdCommand returns the command that manages an HTPasswd identity provider's file.
func htpasswdCommand(opts *options) *cobra.Command {
	var file string
	command := &cobra.Command{
		Use: "htpasswd", Short: "Manage the users and passwords in the file of an HTPasswd identity provider", GroupID: "host",
		Long: `Manage the users and passwords in the file of an HTPasswd identity provider. With several masters, the commands change a file in the data
directory on all of them.

A change applies to the next login. It does not end sessions or revoke tokens. To do this, also delete the User and its Identity.`,
	}
	command.PersistentFlags().StringVar(&file, "file", "", "password file; required unless the configuration has exactly one HTPasswd provider")
	withFile := func(do func(cmd *cobra.Command, path string, args []string) error) func(*cobra.Command, []string) error {
		return func(cmd *cobra.Command, args []string) error {
			path, err := htpasswdFile(opts, file)
			if err != nil {
				return err
			}
			return do(cmd, path, args)
		}
	}
	command.AddCommand(
		&cobra.Command{
			Use: "set USER", Short: "Set a user's password, and create the user if it does not exist", Args: cobra.ExactArgs(1),
			Long: "Set a user's password. The command prompts for it on a terminal, otherwise it reads the first line of standard input.",
			RunE: withFile(func(cmd *cobra.Command, path string, args []string) error {
				password, err := readSecret(cmd.InOrStdin(), cmd.ErrOrStderr(), "New password for "+args[0])
				if err != nil {
					return err
				}
				return changePasswords(cmd, opts, path, func() error { return htpasswd.Set(path, args[0], password) })
			}),
		},
		&cobra.Command{
			Use: "delete USER", Short: "Delete a user", Args: cobra.ExactArgs(1),
			RunE: withFile(func(cmd *cobra.Command, path string, args []string) error {
				return changePasswords(cmd, opts, path, func() error { return htpasswd.Delete(path, args[0]) })
			}),
		},
		&cobra.Command{
			Use: "list", Short: "List the users", Args: cobra.NoArgs,
			RunE: withFile(func(cmd *cobra.Command, path string, _ []string) error {
				users, err := htpasswd.List(path)
				for _, user := range users {
					fmt.Fprintln(cmd.OutOrStdout(), user)
				}
				return err
			}),
		},
	)
	return command
}

// htpasswdFile returns the file from --file or, if the flag is not set, the file of the only
// HTPasswd provider.
func htpasswdFile(opts *options, flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	h, err := opts.loadMaster()
	if err != nil {
		return "", err
	}
	switch files := h.HTPasswdFiles(); len(files) {
	case 0:
		return "", errors.New("find htpasswd file: the configuration has no HTPasswd identity provider; set --file")
	case 1:
		return files[0], nil
	default:
		return "", fmt.Errorf("find htpasswd file: the configuration has several HTPasswd identity providers, with the files %s; set --file", strings.Join(files, ", "))
	}
}

// changePasswords calls edit to change a password file on this master. If the file is in the data
// directory, it also changes the file on all other masters.
func changePasswords(cmd *cobra.Command, opts *options, path string, edit func() error) error {
	h, err := opts.load()
	if err != nil || !h.SeveralMasters() {
		return edit() // --file does not require a configuration
	}
	_, client, err := connectAdmin(h)
	if err != nil {
		return err
	}
	shared := h.SharedFiles(client)
	for key, file := range shared.Files {
		if file.Path == path {
			return shared.Change(cmd.Context(), key, edit)
		}
	}
	return edit()
}
