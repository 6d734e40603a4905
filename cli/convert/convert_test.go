package convert

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// apiVersionOrKind matches the apiVersion and kind fields of an object in YAML or JSON. It does not
// match the fields of nested objects.
var apiVersionOrKind = regexp.MustCompile(`^(?:(apiVersion|kind)|    "(apiVersion|kind)"): `)

func TestConvert(t *testing.T) {
	for _, test := range []struct {
		name    string
		args    []string
		want    []string // versions and kinds in the output
		failure string   // part of the message
	}{
		{
			name: "file", args: []string{"-f", "testdata/old.yaml"},
			want: []string{"apiVersion: apps/v1", "kind: Deployment", "apiVersion: route.openshift.io/v1", "kind: Route"},
		},
		{
			name: "directory", args: []string{"-f", "testdata"},
			want: []string{"apiVersion: v1", "kind: ConfigMap", "apiVersion: apps/v1", "kind: Deployment", "apiVersion: route.openshift.io/v1", "kind: Route"},
		},
		{name: "subdirectory, as JSON", args: []string{"-R", "-f", "testdata/nested", "-o", "json"}, want: []string{`"apiVersion": "batch/v1",`, `"kind": "CronJob",`}},
		{name: "pattern", args: []string{"-f", "testdata/*.yml"}, want: []string{"apiVersion: v1", "kind: ConfigMap"}},
		{name: "no file", failure: "specify the files with -f"},
		{name: "missing file", args: []string{"-f", "testdata/missing.yaml"}, failure: `file "testdata/missing.yaml" does not exist`},
		{name: "unknown format", args: []string{"-f", "testdata/old.yaml", "-o", "xml"}, failure: "must be yaml or json"},
		{name: "text", args: []string{"-f", "testdata/readme.txt"}, failure: `read manifest "testdata/readme.txt"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, errOut, failure := objectstest.Execute(t, New, test.args...)
			if test.failure == "" && failure != "" || !strings.Contains(failure, test.failure) {
				t.Fatalf("the command failed with %q, want %q", failure, test.failure)
			}
			var lines []string
			for line := range strings.Lines(out) {
				if apiVersionOrKind.MatchString(line) {
					lines = append(lines, strings.TrimSpace(line))
				}
			}
			if got, want := strings.Join(lines, "\n"), strings.Join(test.want, "\n"); test.failure == "" && got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if isNew := len(test.want) == 2 && test.want[0] == "apiVersion: v1"; test.failure == "" && isNew != (errOut == "") {
				t.Errorf("the command warns %q", errOut)
			}
		})
	}
}

// TestCommandReadsConvertedCopies also checks that messages contain the file name that the user
// passed, and that no copy remains.
func TestCommandReadsConvertedCopies(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	for _, test := range []struct {
		name, arg, input string
		wantText         string // text in the file that the command reads
		wantSame         bool   // true if the command reads the user's own file
	}{
		{name: "old file", arg: "testdata/old.yaml", wantText: "apps/v1"},
		{name: "new file", arg: "testdata/new.yml", wantText: "ConfigMap", wantSame: true},
		{name: "standard input", arg: "-", input: "apiVersion: v1\nkind: Route\n", wantText: "route.openshift.io/v1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				streams.In = strings.NewReader(test.input)
				command := &cobra.Command{Use: "read", Run: func(command *cobra.Command, _ []string) {
					names, err := command.Flags().GetStringSlice("filename")
					util.CheckErr(err)
					text, err := os.ReadFile(names[0])
					util.CheckErr(err)
					if !strings.Contains(string(text), test.wantText) || (names[0] == test.arg) != test.wantSame {
						t.Errorf("the command reads %s: %s", names[0], text)
					}
					util.CheckErr(util.UsageErrorf(command, "cannot use %s", names[0]))
				}}
				command.Flags().StringSliceP("filename", "f", nil, "")
				AcceptOldManifests(command, objectstest.Fatal, streams)
				return command
			}, "-f", test.arg)
			if name := strings.Replace(test.arg, "-", "STDIN", 1); !strings.Contains(failure, "cannot use "+name) {
				t.Errorf("the command fails with %q", failure)
			}
			if copies, _ := filepath.Glob(filepath.Join(os.TempDir(), "oc-manifests-*")); len(copies) > 0 {
				t.Errorf("the copies %v remain", copies)
			}
		})
	}
}
