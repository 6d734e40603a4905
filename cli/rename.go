package cli

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/apply"
	"k8s.io/kubectl/pkg/cmd/clusterinfo"
	"k8s.io/kubectl/pkg/cmd/config"
	"k8s.io/kubectl/pkg/cmd/describe"
	"k8s.io/kubectl/pkg/cmd/explain"
	"k8s.io/kubectl/pkg/cmd/plugin"
	"k8s.io/kubectl/pkg/cmd/util"
)

// renameLate writes name where a command says kubectl, when it says it: renaming all commands takes
// a third of the time in which they are made.
func renameLate(root *cobra.Command, name string, args []string) {
	help, usage := root.HelpFunc(), root.UsageFunc()
	root.SetHelpFunc(func(command *cobra.Command, args []string) {
		rename(command, name)
		help(command, args)
	})
	root.SetUsageFunc(func(command *cobra.Command) error {
		rename(command, name)
		return usage(command)
	})
	// Tells what commands and flags are for.
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		rename(root, name)
	}
	if called, _, err := root.Find(args); err == nil { // says that it is deprecated before it runs
		called.Deprecated = renameText(called.Deprecated, name)
	}
}

// rename writes name where the help of a command and of those below it says kubectl.
func rename(command *cobra.Command, name string) {
	for _, text := range []*string{&command.Short, &command.Long, &command.Example, &command.Deprecated} {
		*text = renameText(*text, name)
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage = renameText(flag.Usage, name) })
	for _, child := range command.Commands() {
		rename(child, name)
	}
}

// word matches kubectl with everything that makes it a part of something longer: an address, an
// annotation, a file name.
var word = regexp.MustCompile(`[\w./:-]*kubectl[\w./:-]*`)

// completion matches the functions and files of shell completion, which are named like the program.
var completion = regexp.MustCompile(`(^__start_|/_|completion\.d/)kubectl$`)

// renameText replaces the program kubectl by name, and leaves what only contains the word, such as
// kubectl.kubernetes.io/last-applied-configuration.
func renameText(text, name string) string {
	if !strings.Contains(text, "kubectl") { // most texts; the expression is slow
		return text
	}
	return word.ReplaceAllStringFunc(text, func(found string) string {
		bare := strings.TrimRight(found, ".:")
		if bare != "kubectl" && !completion.MatchString(bare) {
			return found
		}
		return strings.TrimSuffix(bare, "kubectl") + name + found[len(bare):]
	})
}

// renamed passes text on with the name of the program instead of kubectl.
type renamed struct {
	io.Writer
	name string
}

// Write writes a text; hints come in one piece.
func (r renamed) Write(text []byte) (int, error) {
	_, err := io.WriteString(r.Writer, renameText(string(text), r.name))
	return len(text), err
}

// fatal ends the process as kubectl does, with the name of the program in what it says.
func fatal(name string, streams genericiooptions.IOStreams) func(message string, code int) {
	return func(message string, code int) {
		if message != "" {
			fmt.Fprintln(streams.ErrOut, strings.TrimSuffix(renameText(message, name), "\n"))
		}
		os.Exit(code)
	}
}

// underOurName are kubectl's commands that write their program's name into what they say.
func underOurName(name string, flags *genericclioptions.ConfigFlags, factory util.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	hints := genericiooptions.IOStreams{In: streams.In, Out: renamed{streams.Out, name}, ErrOut: renamed{streams.ErrOut, name}}
	return []*cobra.Command{
		newGet(name, factory, streams),
		explain.NewCmdExplain(name, factory, streams),
		describe.NewCmdDescribe(name, factory, streams),
		apply.NewCmdApply(name, factory, streams),
		annotate.NewCmdAnnotate(name, factory, streams),
		clusterinfo.NewCmdClusterInfo(factory, hints),
		plugin.NewCmdPlugin(hints),
		config.NewCmdConfig(flags, clientcmd.NewDefaultPathOptions(), hints),
	}
}
