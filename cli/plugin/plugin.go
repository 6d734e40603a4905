// Package plugin implements `oc plugin NAME`, which runs plugins that plugin.yaml files describe,
// as documented for OpenShift 3.11. Programs in PATH with the name oc-NAME or kubectl-NAME are also
// plugins, but package cli runs them.
//
// The environment variable KUBECTL_PLUGINS_PATH contains the directories with plugin.yaml files.
// The default is ~/.kube/plugins.
package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/homedir"
	"k8s.io/kubectl/pkg/cmd/util"
	"sigs.k8s.io/yaml"
)

// fileName is the name of a descriptor file.
const fileName = "plugin.yaml"

// descriptor describes a plugin or one of its subcommands.
type descriptor struct {
	Name      string       `json:"name"`
	ShortDesc string       `json:"shortDesc"`
	LongDesc  string       `json:"longDesc"`
	Example   string       `json:"example"`
	Command   string       `json:"command"`
	Flags     []flag       `json:"flags"`
	Tree      []descriptor `json:"tree"`

	dir string // directory of the descriptor
}

// flag is a plugin's flag. All flags have string values.
type flag struct {
	Name      string `json:"name"`
	Shorthand string `json:"shorthand"`
	Desc      string `json:"desc"`
	DefValue  string `json:"defValue"`
}

// AddTo adds the user's plugins to `oc plugin`. If there are no plugins, `oc plugin` returns an
// error.
func AddTo(parent *cobra.Command, factory util.Factory, streams genericiooptions.IOStreams) {
	parent.Short = "Runs a command-line plugin"
	count := 0
	for _, descriptor := range load(directories(), streams) {
		if command := descriptor.command(factory, streams); command != nil {
			parent.AddCommand(command)
			count++
		}
	}
	run := parent.Run
	parent.Run = func(command *cobra.Command, args []string) {
		if count == 0 && len(args) == 0 {
			util.CheckErr(errors.New("no plugins installed. To list programs in PATH that are plugins, run: oc plugin list"))
		}
		run(command, args)
	}
}

// directories returns the directories that can contain plugins.
func directories() []string {
	if paths := os.Getenv("KUBECTL_PLUGINS_PATH"); paths != "" {
		return filepath.SplitList(paths)
	}
	return []string{filepath.Join(homedir.HomeDir(), ".kube", "plugins")}
}

// load returns the plugins below the directories. For each invalid descriptor, it prints a warning.
func load(dirs []string, streams genericiooptions.IOStreams) (all []descriptor) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.Name() != fileName {
				return nil // a directory that doesn't exist has no plugins
			}
			descriptor, err := read(path)
			if err != nil {
				fmt.Fprintf(streams.ErrOut, "Warning: skip plugin %q: %v\n", path, err)
				return nil
			}
			all = append(all, descriptor)
			return nil
		})
	}
	return all
}

// read reads and checks a descriptor.
func read(path string) (item descriptor, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return item, err
	}
	if err := yaml.Unmarshal(text, &item); err != nil {
		return item, err
	}
	item.dir, err = filepath.Abs(filepath.Dir(path))
	if problem := item.check(); err == nil {
		err = problem
	}
	return item, err
}

// check returns an error if the descriptor or one of its subcommands is invalid.
func (d descriptor) check() error {
	switch {
	case d.Name == "" || strings.ContainsAny(d.Name, " \t\n/"):
		return fmt.Errorf("the name %q is not valid", d.Name)
	case d.ShortDesc == "":
		return errors.New("shortDesc is missing")
	case d.Command == "" && len(d.Tree) == 0:
		return errors.New("command and tree are missing")
	}
	for _, child := range d.Tree {
		if err := child.check(); err != nil {
			return fmt.Errorf("tree: %w", err)
		}
	}
	return nil
}

// command returns a plugin's cobra command.
func (d descriptor) command(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{Use: d.Name, Short: d.ShortDesc, Long: d.LongDesc, Example: d.Example, Run: util.DefaultSubCommandRun(streams.ErrOut)}
	for _, flag := range d.Flags {
		if command.Flags().Lookup(flag.Name) == nil && len(flag.Shorthand) < 2 {
			command.Flags().StringP(flag.Name, flag.Shorthand, flag.DefValue, flag.Desc)
		}
	}
	if d.Command != "" {
		command.Run = func(command *cobra.Command, args []string) {
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			util.CheckErr(d.run(command, args, namespace, streams))
		}
	}
	for _, child := range d.Tree {
		child.dir = d.dir
		command.AddCommand(child.command(factory, streams))
	}
	return command
}

// run runs a plugin's program in the descriptor's directory.
func (d descriptor) run(command *cobra.Command, args []string, namespace string, streams genericiooptions.IOStreams) error {
	words := strings.Fields(d.Command)
	program := exec.CommandContext(command.Context(), words[0], append(words[1:], args...)...)
	program.Dir = d.dir
	program.Stdin, program.Stdout, program.Stderr = streams.In, streams.Out, streams.ErrOut
	program.Env = append(os.Environ(), d.environment(command, namespace)...)
	return program.Run()
}

// environment returns a plugin's environment variables. They have the same names as in OpenShift
// 3.11.
func (d descriptor) environment(command *cobra.Command, namespace string) (all []string) {
	set := func(name, value string) { all = append(all, "KUBECTL_PLUGINS_"+name+"="+value) }
	if caller, err := os.Executable(); err == nil {
		set("CALLER", caller)
	}
	set("CURRENT_NAMESPACE", namespace)
	for name, value := range map[string]string{
		"NAME": d.Name, "SHORT_DESC": d.ShortDesc, "LONG_DESC": d.LongDesc, "EXAMPLE": d.Example, "COMMAND": d.Command,
	} {
		set("DESCRIPTOR_"+name, value)
	}
	variable := func(name string) string { return strings.ToUpper(strings.ReplaceAll(name, "-", "_")) }
	command.InheritedFlags().VisitAll(func(f *pflag.Flag) { set("GLOBAL_FLAG_"+variable(f.Name), f.Value.String()) })
	for _, flag := range d.Flags {
		if f := command.Flags().Lookup(flag.Name); f != nil {
			set("LOCAL_FLAG_"+variable(flag.Name), f.Value.String())
		}
	}
	return all
}
