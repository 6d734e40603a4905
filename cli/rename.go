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

// renameLate replaces kubectl with name in a command's texts when they are printed. Renaming all
// commands at startup would take a third of the time that is required to create them.
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
	// Rename all commands, because shell completion prints the descriptions of commands and flags.
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) {
		rename(root, name)
	}
	// Cobra prints the deprecation message before it runs a deprecated command.
	if command, _, err := root.Find(args); err == nil {
		command.Deprecated = renameText(command.Deprecated, name)
	}
}

// rename replaces kubectl with name in the help of a command and its subcommands.
func rename(command *cobra.Command, name string) {
	for _, text := range []*string{&command.Short, &command.Long, &command.Example, &command.Deprecated} {
		*text = renameText(*text, name)
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage = renameText(flag.Usage, name) })
	for _, child := range command.Commands() {
		rename(child, name)
	}
}

// word matches a word that contains kubectl, such as a URL, an annotation or a file name.
var word = regexp.MustCompile(`[\w./:-]*kubectl[\w./:-]*`)

// completion matches the shell completion functions and files whose names contain the program's
// name.
var completion = regexp.MustCompile(`(^__start_|/_|completion\.d/)kubectl$`)

// renameText replaces the program name kubectl with name. It keeps longer words that contain
// kubectl, such as kubectl.kubernetes.io/last-applied-configuration.
func renameText(text, name string) string {
	// This check is an optimization: the regular expression is slow, and most texts do not contain
	// kubectl.
	if !strings.Contains(text, "kubectl") {
		return text
	}
	return word.ReplaceAllStringFunc(text, func(match string) string {
		bare := strings.TrimRight(match, ".:")
		if bare != "kubectl" && !completion.MatchString(bare) {
			return match
		}
		return strings.TrimSuffix(bare, "kubectl") + name + match[len(bare):]
	})
}

// newName is a writer that replaces kubectl with the program's name. It requires that each write
// contains whole words.
type newName struct {
	io.Writer
	name string
}

// Write writes the renamed text. It always returns the length of the original text.
func (r newName) Write(text []byte) (int, error) {
	_, err := io.WriteString(r.Writer, renameText(string(text), r.name))
	return len(text), err
}

// fatal returns a function that, as in kubectl, prints a message with the program's name and exits.
func fatal(name string, streams genericiooptions.IOStreams) func(message string, code int) {
	return func(message string, code int) {
		if message != "" {
			fmt.Fprintln(streams.ErrOut, strings.TrimSuffix(renameText(withHint(message), name), "\n"))
		}
		os.Exit(code)
	}
}

// underOurName returns the kubectl commands whose output contains the program's name.
func underOurName(name string, flags *genericclioptions.ConfigFlags, factory util.Factory, streams genericiooptions.IOStreams) []*cobra.Command {
	hints := genericiooptions.IOStreams{In: streams.In, Out: newName{streams.Out, name}, ErrOut: newName{streams.ErrOut, name}}
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
