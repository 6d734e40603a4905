package command

import "github.com/spf13/cobra"

func configCommand(opts *options) *cobra.Command {
	view := &cobra.Command{
		Use:   "view",
		Short: "Print the effective configuration: the files and every default",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			text, err := h.View()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	command := &cobra.Command{Use: "config", Short: "Inspect the configuration", GroupID: "look"}
	command.AddCommand(view)
	return command
}
