package plugin

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestPluginsAreReadFromDescriptors(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/tree/plugin.yaml", "name: tree\nshortDesc: A tree\ntree:\n- {name: child, shortDesc: A child, command: echo one}\n")
	write(t, dir+"/incomplete/plugin.yaml", "name: incomplete\nshortDesc: No command\n")
	write(t, dir+"/bad/plugin.yaml", "name: ../bad\nshortDesc: An invalid name\ncommand: echo\n")
	streams, _, _, warnings := genericiooptions.NewTestIOStreams()
	all := load([]string{dir, "/nonexistent"}, streams)
	if len(all) != 1 || all[0].Name != "tree" || all[0].dir != dir+"/tree" {
		t.Fatalf("plugins %+v", all)
	}
	for _, want := range []string{"command and tree are missing", `the name "../bad" is not valid`} {
		if !strings.Contains(warnings.String(), want) {
			t.Errorf("warnings %q, want %q", warnings.String(), want)
		}
	}
	if child, _, err := all[0].command(nil, streams).Find([]string{"child"}); err != nil || child.Short != "A child" {
		t.Errorf("child %v, %v", child, err)
	}
}

func TestPluginRunsInItsDirectoryWithItsFlags(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/run.sh", "#!/bin/sh\npwd\necho \"$1\"\nenv\n")
	d := descriptor{Name: "env", ShortDesc: "Prints", Command: "./run.sh first", dir: dir, Flags: []flag{
		{Name: "one", Shorthand: "o"}, {Name: "two-words", DefValue: "default"},
	}}
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	command := d.command(nil, streams)
	root := &cobra.Command{Use: "oc"}
	root.PersistentFlags().String("request-timeout", "0", "")
	root.AddCommand(command)
	command.Run = func(command *cobra.Command, args []string) {
		if err := d.run(command, args, "shop", streams); err != nil {
			t.Error(err)
		}
	}
	root.SetArgs([]string{"env", "-o", "value"})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for _, want := range []string{
		dir, "first", "KUBECTL_PLUGINS_CURRENT_NAMESPACE=shop", "KUBECTL_PLUGINS_DESCRIPTOR_COMMAND=./run.sh first",
		"KUBECTL_PLUGINS_GLOBAL_FLAG_REQUEST_TIMEOUT=0", "KUBECTL_PLUGINS_LOCAL_FLAG_ONE=value", "KUBECTL_PLUGINS_LOCAL_FLAG_TWO_WORDS=default",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in:\n%s", want, out)
		}
	}
}
