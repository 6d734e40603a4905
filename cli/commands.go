package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/util/templates"

	"github.com/slipway-platform/slipway/cli/debug"
	"github.com/slipway-platform/slipway/cli/idle"
	"github.com/slipway-platform/slipway/cli/image/content"
	"github.com/slipway-platform/slipway/cli/observe"
	"github.com/slipway-platform/slipway/cli/rsync"
	"github.com/slipway-platform/slipway/cli/run"
	"github.com/slipway-platform/slipway/cli/set"
)

// ownCommands are the commands that oc has and kubectl has not. One file of this package makes each.
func ownCommands(factory util.Factory, streams genericiooptions.IOStreams) own {
	return own{
		top: []*cobra.Command{
			newAdm(factory, streams),
			newLogin(factory, streams),
			newLogout(factory, streams),
			newWhoami(factory, streams),
			newProjects(factory, streams),
			newProject(factory, streams),
			newNewProject(factory, streams),
			newPolicy(factory, streams, false),
			newTag(factory, streams),
			newImportImage(factory, streams),
			content.New(streams),
			newRegistry(factory, streams),
			newRollback(factory, streams),
			newExpose(factory, streams),
			newLogs(factory, streams),
			newNewBuild(factory, streams),
			newStartBuild(factory, streams),
			newCancelBuild(factory, streams),
			newBuildLogs(factory, streams),
			newDeploy(factory, streams),
			newRsh(factory, streams),
			newExec(factory, streams),
			rsync.New(factory, streams),
			run.New(factory, streams),
			debug.New(factory, streams),
			observe.New(factory, streams),
			set.Env(factory, streams),
			set.Volume(factory, streams),
			newServiceAccounts(factory, streams),
			newSecrets(factory, streams),
			newStatus(factory, streams),
			newTypes(streams),
			idle.New(factory, streams),
			newProcess(factory, streams),
			newNewApp(factory, streams),
			newExport(factory, streams),
			newConvert(streams),
			newVersion(factory, streams),
		},
		below: map[string][]*cobra.Command{
			"rollout": newRolloutOwn(factory, streams),
			"set":     set.Commands(factory, streams),
			"create": {
				newCreateUser(factory, streams),
				newCreateIdentity(factory, streams),
				newCreateMapping(factory, streams),
				newCreateClusterQuota(factory, streams),
				newCreateStream(factory, streams),
				newCreateStreamTag(factory, streams),
				newCreateConfig(factory, streams),
				newCreateRoute(factory, streams),
			},
		},
	}
}

// headings are the groups of the root's help, after those of OpenShift 3, with the commands of each. What
// stands in none is listed last.
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

// own are commands of ours.
type own struct {
	// top are those at the root.
	top []*cobra.Command
	// below are those below one of kubectl's, by its name, such as "create".
	below map[string][]*cobra.Command
}

// addTo adds the commands to kubectl's tree and writes the help of the root anew.
func (o own) addTo(root *cobra.Command) {
	add(root, o.top)
	for _, parent := range root.Commands() {
		add(parent, o.below[parent.Name()])
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

// add adds commands to a parent in place of those of the same name.
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
