// Package cli implements the client, `oc` and `kubectl`: Kubernetes' command-line tool with
// OpenShift's commands. Without a kubeconfig, the client connects to the cluster that runs on the
// same host.
package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	componentcli "k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"
	kubectldescribe "k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/convert"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
	"github.com/slipway-platform/slipway/cli/describe"
	"github.com/slipway-platform/slipway/cli/language"
	"github.com/slipway-platform/slipway/cli/login"
	ocplugin "github.com/slipway-platform/slipway/cli/plugin"
	"github.com/slipway-platform/slipway/cli/pod"
	"github.com/slipway-platform/slipway/cli/set"
	"github.com/slipway-platform/slipway/internal/memory"
)

// New returns the client as a command of another program. It creates the client's own commands only
// when the command runs, because creating them takes longer than most other commands of that
// program.
func New(name string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              "Run the client of the cluster, " + name,
		DisableFlagParsing: true,
		SilenceUsage:       true,
		RunE: func(_ *cobra.Command, args []string) error {
			return Run(name, args)
		},
	}
}

// Run runs the client with the given arguments. name is the name of the program, `oc` or `kubectl`.
// Run returns cobra's errors, such as the error for an unknown flag. If a command fails, it prints
// its error and exits, as in kubectl.
func Run(name string, args []string) error {
	if path := login.HostKubeconfig(os.Getenv, clientcmd.RecommendedHomeFile); path != "" {
		// An environment variable is used instead of a flag because `oc config` and plugins also
		// read it.
		if err := os.Setenv("KUBECONFIG", path); err != nil {
			return err
		}
	}
	if editor := os.Getenv("OC_EDITOR"); name == "oc" && editor != "" {
		// OC_EDITOR is OpenShift 3's name for kubectl's KUBE_EDITOR.
		if err := os.Setenv("KUBE_EDITOR", editor); err != nil {
			return err
		}
	}
	memory.DelayCollection()
	args, notes := oldFlags(args)
	for _, note := range notes {
		fmt.Fprintln(os.Stderr, note)
	}
	// Ignore the error here. An invalid value is reported when all flags are parsed.
	_, _ = logs.GlogSetter(kubectl.GetLogVerbosity(args))
	plugin.ValidPluginFilenamePrefixes = pluginPrefixes(name)
	kubectldescribe.DescriberFn = describe.For
	if err := errors.Join(language.Late, build.Register(), deploymentconfig.Register(), pod.Register(), set.Register()); err != nil {
		return err
	}
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	return componentcli.RunNoErrOutput(command(name, args, streams))
}

// oldFlags replaces OpenShift 3's flags. For every command, --loglevel becomes --v and --logspec
// becomes --vmodule. For `oc status`, -v becomes --suggest. For `oc set deployment-hook`, -v
// becomes --volumes. oldFlags returns a note for each replaced -v.
func oldFlags(args []string) (current, notes []string) {
	args = slices.Clone(args)
	replace := func(i int, flag string) {
		args[i] = flag
		notes = append(notes, fmt.Sprintf("Flag shorthand -v has been deprecated, use %s instead", flag))
	}
	for i, arg := range args {
		if arg == "--" {
			break
		}
		value := i+1 < len(args) && !strings.HasPrefix(args[i+1], "-")
		switch {
		case arg != "-v" || i == 0:
		case args[0] == "status" && !value:
			replace(i, "--suggest")
		case value && slices.Equal(args[:2], []string{"set", "deployment-hook"}) && strings.Trim(args[i+1], "0123456789") != "":
			replace(i, "--volumes")
		}
		if level, ok := strings.CutPrefix(arg, "--loglevel"); ok && (level == "" || level[0] == '=') {
			args[i] = "--v" + level
		}
		if pattern, ok := strings.CutPrefix(arg, "--logspec"); ok && (pattern == "" || pattern[0] == '=') {
			args[i] = "--vmodule" + pattern
		}
	}
	return args, notes
}

// Tree returns the client's command tree for documentation and checks. name is `oc` or `kubectl`.
func Tree(name string) *cobra.Command {
	return command(name, nil, genericiooptions.NewTestIOStreamsDiscard())
}

// command returns the client's command tree.
func command(name string, args []string, streams genericiooptions.IOStreams) *cobra.Command {
	flags := connectionFlags(name).WithWarningPrinter(streams)
	options := kubectl.KubectlOptions{
		PluginHandler: kubectl.NewDefaultPluginHandler(pluginPrefixes(name)),
		Arguments:     append([]string{name}, args...),
		ConfigFlags:   flags,
		IOStreams:     streams,
	}
	factory := util.NewFactory(util.NewMatchVersionFlags(newConnection(flags, streams)))
	if name == "kubectl" {
		root := kubectl.NewDefaultKubectlCommandWithArgs(options)
		root.SetArgs(args)
		return root
	}
	root := kubectlTree(options)
	add(root, underOurName(name, flags, factory, streams))
	if parent, _, err := root.Find([]string{"plugin"}); err == nil && slices.Contains(args, "plugin") {
		ocplugin.AddTo(parent, factory, streams)
	} else if err == nil {
		parent.Short = "Runs a command-line plugin"
	}
	ownCommands(factory, streams).addTo(root)
	addOldGlobalFlags(root)
	acceptOldFlags(root)
	explainMissingMetrics(root, factory, streams.ErrOut)
	warnAboutUnknownFields(root)
	convert.AcceptOldManifests(root, fatal(name, streams), streams)
	suggestCommands(root)
	util.BehaviorOnFatal(fatal(name, streams))
	root.SetArgs(args)
	if err := runPlugin(root, options.PluginHandler, args); err != nil {
		fmt.Fprintf(streams.ErrOut, "Error: %v\n", err)
		os.Exit(1)
	}
	renameLate(root, name, args)
	root.Use = name
	root.Short = "Client of an OpenShift or Kubernetes cluster"
	root.Long = strings.TrimSpace(`
OpenShift Client: develop, build, deploy and run applications on an OpenShift
or Kubernetes cluster.

It contains every command of kubectl. As root on a host of the cluster, it
needs no kubeconfig. On other machines, set KUBECONFIG or --kubeconfig.`)
	return root
}

// kubectlTree returns kubectl's command tree. While kubectl creates the commands, PATH is unset so
// that kubectl does not search it for plugins. The search takes a tenth of the time that kubectl
// needs to create the commands. Its result is used only in a help text that Slipway replaces.
func kubectlTree(options kubectl.KubectlOptions) *cobra.Command {
	path, set := os.LookupEnv("PATH")
	if set {
		_ = os.Unsetenv("PATH") // cannot fail: the name is valid
		defer func() { _ = os.Setenv("PATH", path) }()
	}
	return kubectl.NewKubectlCommand(options)
}

// runPlugin replaces this process with a plugin if root does not contain the command in args. Like
// kubectl, it also supports plugins for subcommands of commands such as `create`. If there is no
// such plugin, runPlugin returns.
func runPlugin(root *cobra.Command, handler kubectl.PluginHandler, args []string) error {
	command, rest, err := root.Find(args)
	if err != nil {
		word := slices.IndexFunc(args, func(arg string) bool { return !strings.HasPrefix(arg, "-") })
		if word >= 0 && (args[word] == "help" || strings.HasPrefix(args[word], cobra.ShellCompRequestCmd)) {
			return nil // cobra adds these commands later
		}
		return kubectl.HandlePluginCommand(handler, args, 1)
	}
	has := func(name string) bool {
		return slices.ContainsFunc(command.Commands(), func(c *cobra.Command) bool { return c.Name() == name })
	}
	if kubectl.IsSubcommandPluginAllowed(command.Name()) && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") && !has(rest[0]) {
		return kubectl.HandlePluginCommand(handler, args, len(args)-len(rest)+1)
	}
	return nil
}

// pluginPrefixes returns the prefixes of plugin file names. oc also runs kubectl's plugins, so both
// `oc-x` and `kubectl-x` provide `oc x`.
func pluginPrefixes(name string) []string {
	if name == "kubectl" {
		return []string{name}
	}
	return []string{name, "kubectl"}
}
