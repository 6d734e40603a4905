package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/slipway-platform/slipway/cli/adm"
	"github.com/slipway-platform/slipway/cli/app"
	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/convert"
	"github.com/slipway-platform/slipway/cli/create"
	"github.com/slipway-platform/slipway/cli/debug"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
	"github.com/slipway-platform/slipway/cli/export"
	"github.com/slipway-platform/slipway/cli/extract"
	"github.com/slipway-platform/slipway/cli/idle"
	"github.com/slipway-platform/slipway/cli/image"
	"github.com/slipway-platform/slipway/cli/image/content"
	"github.com/slipway-platform/slipway/cli/login"
	"github.com/slipway-platform/slipway/cli/observe"
	"github.com/slipway-platform/slipway/cli/pod"
	"github.com/slipway-platform/slipway/cli/policy"
	"github.com/slipway-platform/slipway/cli/project"
	"github.com/slipway-platform/slipway/cli/registry"
	"github.com/slipway-platform/slipway/cli/rsync"
	"github.com/slipway-platform/slipway/cli/run"
	"github.com/slipway-platform/slipway/cli/serviceaccount"
	"github.com/slipway-platform/slipway/cli/set"
	"github.com/slipway-platform/slipway/cli/status"
	"github.com/slipway-platform/slipway/cli/template"
)

// ownCommands returns the oc commands that kubectl does not have. Each noun, such as `policy` in
// `oc policy`, has its own package, which contains the subcommands.
func ownCommands(factory util.Factory, streams genericiooptions.IOStreams) commandGroup {
	return commandGroup{
		top: []*cobra.Command{
			adm.New(factory, streams),
			adm.NewExperimental(factory, streams),
			login.New(factory, streams),
			login.NewLogout(factory, streams),
			login.NewWhoami(factory, streams),
			project.NewList(factory, streams),
			project.New(factory, streams),
			project.NewRequest(factory, streams),
			policy.New(factory, streams, false),
			image.NewTag(factory, streams),
			image.NewImport(factory, streams),
			content.New(streams),
			registry.New(factory, streams),
			deploymentconfig.NewRollback(factory, streams),
			create.NewExpose(factory, streams),
			pod.NewLogs(factory, streams),
			app.NewBuild(factory, streams),
			build.NewStart(factory, streams),
			build.NewCancel(factory, streams),
			build.NewLogs(factory, streams),
			deploymentconfig.NewDeploy(factory, streams),
			pod.NewRsh(factory, streams),
			pod.NewExec(factory, streams),
			rsync.New(factory, streams),
			run.New(factory, streams),
			debug.New(factory, streams),
			observe.New(factory, streams),
			set.Env(factory, streams),
			set.Volume(factory, streams),
			serviceaccount.New(factory, streams),
			serviceaccount.NewSecrets(factory, streams),
			status.New(factory, streams),
			newTypes(streams),
			idle.New(factory, streams),
			template.NewProcess(factory, streams),
			app.New(factory, streams),
			export.New(factory, streams),
			extract.New(factory, streams),
			convert.New(streams),
			newVersion(factory, streams),
			newCluster(),
		},
		below: map[string][]*cobra.Command{
			"rollout": deploymentconfig.NewRollout(factory, streams),
			"set":     set.Commands(factory, streams),
			"adm":     {newMustGather()},
			"create": {
				create.NewUser(factory, streams),
				create.NewIdentity(factory, streams),
				create.NewMapping(factory, streams),
				create.NewClusterQuota(factory, streams),
				create.NewStream(factory, streams),
				create.NewStreamTag(factory, streams),
				create.NewConfig(factory, streams),
				create.NewRoute(factory, streams),
			},
		},
	}
}

// headings returns the headings in the root command's help, in OpenShift 3's wording, and the names
// of the commands below each heading. All other commands are listed at the end.
func headings() [][2]string {
	return [][2]string{
		{"Basic Commands:", "types login new-project new-app status project projects explain"},
		{"Build and Deploy Commands:", "rollout rollback new-build start-build cancel-build import-image tag"},
		{"Application Management Commands:", "get describe edit set label annotate expose delete scale autoscale secrets serviceaccounts"},
		{"Troubleshooting and Debugging Commands:", "logs rsh rsync port-forward debug exec proxy attach run cp wait events"},
		{"Advanced Commands:", "adm create replace apply patch process export extract idle observe policy auth diff kustomize convert image registry"},
		{"Settings Commands:", "logout config whoami completion"},
		{"Cluster Management Commands:", "cluster-info top cordon uncordon drain taint certificate"},
	}
}

// commandGroup contains the commands that kubectl does not have.
type commandGroup struct {
	// top contains the subcommands of the root command.
	top []*cobra.Command
	// below maps the names of kubectl's commands, such as "create", to their additional subcommands.
	below map[string][]*cobra.Command
}

// addTo adds the commands to kubectl's command tree and replaces the root command's help.
func (o commandGroup) addTo(root *cobra.Command) {
	add(root, o.top)
	for _, parent := range root.Commands() {
		add(parent, o.below[parent.Name()])
	}
	if command, _, err := root.Find([]string{"delete"}); err == nil {
		// Suggest this command for `oc stop`, which was removed before OpenShift 3.11.
		command.SuggestFor = append(command.SuggestFor, "stop")
	}
	if command, _, err := root.Find([]string{"completion"}); err == nil {
		command.Long = "This command prints shell code.\n\n" + command.Long
	}
	var groups templates.CommandGroups
	for _, heading := range headings() {
		group := templates.CommandGroup{Message: heading[0]}
		for name := range strings.FieldsSeq(heading[1]) {
			if command, _, err := root.Find([]string{name}); err == nil {
				group.Commands = append(group.Commands, command)
			}
		}
		groups = append(groups, group)
	}
	groups = templates.AddAdditionalCommands(groups, "Other Commands:", root.Commands())
	templates.ActsAsRootCommand(root, []string{"options", "alpha"}, groups...)
}

// add adds subcommands to a command. They replace existing subcommands with the same name.
func add(parent *cobra.Command, commands []*cobra.Command) {
	for _, command := range commands {
		for _, same := range parent.Commands() {
			if same.Name() == command.Name() {
				parent.RemoveCommand(same)
			}
		}
		parent.AddCommand(command)
	}
}
