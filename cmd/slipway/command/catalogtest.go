package command

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/catalog/ansible"
)

func catalogTestCommand(opts *options) *cobra.Command {
	var trial ansible.Trial
	var parameters string
	var keep bool
	command := &cobra.Command{
		Use:   "test BUNDLE",
		Short: "Run the tests of an Ansible playbook bundle",
		Long: "Run the playbook test of an Ansible playbook bundle in a new project, and delete the project. In the project, the\n" +
			"bundle has the role ansibleServiceBrokerConfig.sandboxRole. The broker's whiteList and blackList do not apply.\n\n" +
			"The exit status is 1 if the test fails, or if the bundle has no test.",
		Example: "  slipway catalog test hello-world-apb\n" +
			"  slipway catalog test postgresql-apb --plan prod --parameters '{\"postgresql_version\": \"15\"}'",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			if trial.Config, err = h.AdminClient(); err != nil {
				return err
			}
			if parameters != "" {
				if err := json.Unmarshal([]byte(parameters), &trial.Parameters); err != nil {
					return fmt.Errorf("parse --parameters: %w", err)
				}
			}
			trial.Options = h.AnsibleOptions()
			trial.KeepNamespace, trial.KeepNamespaceOnError = keep, false
			trial.Bundle, trial.Output = args[0], cmd.OutOrStdout()
			if err := trial.Run(cmd.Context()); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "The test of %s succeeded.\n", trial.Bundle)
			return nil
		},
	}
	flags := command.Flags()
	flags.StringVar(&trial.Plan, "plan", "", "name of a plan of the bundle (default: the first)")
	flags.StringVar(&parameters, "parameters", "", "parameters of the plan, as a JSON object")
	flags.BoolVar(&keep, "keep-project", false, "do not delete the test's project")
	return command
}
