package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
)

// asClient is the environment variable that makes the test binary run as a client. Its value is the
// client's name.
const asClient = "SLIPWAY_TEST_CLIENT"

func TestMain(m *testing.M) {
	if name := os.Getenv(asClient); name != "" {
		root := &cobra.Command{Use: "slipway", SilenceErrors: true}
		root.AddCommand(New(name))
		root.SetArgs(append([]string{name}, os.Args[1:]...))
		if err := root.Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// client runs the client in its own process, with a temporary home directory and the environment
// variables in env.
func client(t *testing.T, name string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	command := exec.Command(os.Args[0], args...)
	command.Env = slices.Concat([]string{asClient + "=" + name, "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"), "SLIPWAY_DATA_DIR=/nonexistent"}, env)
	var out, errOut strings.Builder
	command.Stdout, command.Stderr = &out, &errOut
	var exit *exec.ExitError
	if err := command.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errOut.String(), command.ProcessState.ExitCode()
}

func TestHelpContainsProgramName(t *testing.T) {
	for _, name := range []string{"oc", "kubectl"} {
		for _, args := range [][]string{{"get", "-h"}, {"rollout", "status", "-h"}, {"create", "deployment", "-h"}} {
			help, _, code := client(t, name, nil, args...)
			usage := name + " " + strings.Join(args[:len(args)-1], " ")
			if code != 0 || strings.Count(help, usage) < 2 {
				t.Errorf("%s %v: code %d, usage and examples do not contain %q:\n%s", name, args, code, usage, help)
			}
			if other := "  kubectl "; name == "oc" && strings.Contains(help, other) {
				t.Errorf("oc %v: help contains %q:\n%s", args, other, help)
			}
		}
	}
}

func TestUnknownCommandIsRejected(t *testing.T) {
	_, stderr, code := client(t, "oc", nil, "frobnicate")
	if code != 2 || !strings.Contains(stderr, `unknown command "frobnicate" for "oc"`) {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
}

func TestCompletionContainsCommands(t *testing.T) {
	stdout, _, code := client(t, "oc", nil, "__complete", "rollout", "st")
	if code != 0 || !strings.HasPrefix(stdout, "status\t") {
		t.Errorf("code %d, completions %q", code, stdout)
	}
	if help, _, _ := client(t, "oc", nil, "completion", "-h"); !strings.Contains(help, "prints shell code") {
		t.Errorf("help of completion: %s", help)
	}
	script, _, _ := client(t, "oc", nil, "completion", "bash")
	if !strings.Contains(script, "__start_oc oc") {
		t.Error("bash completion does not complete oc")
	}
}

func TestPluginsAreFoundByProgramName(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"oc-first", "kubectl-first", "kubectl-second"} {
		script := fmt.Sprintf("#!/bin/sh\necho %s \"$@\"\n", name)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name, client string
		args         []string
		want         string
	}{
		{"own prefix comes first", "oc", []string{"first", "a"}, "oc-first a\n"},
		{"kubectl's serve oc too", "oc", []string{"second", "--flag"}, "kubectl-second --flag\n"},
		{"oc's do not serve kubectl", "kubectl", []string{"first"}, "kubectl-first\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, code := client(t, tt.client, []string{"PATH=" + dir + ":" + os.Getenv("PATH")}, tt.args...)
			if diff := cmp.Diff(tt.want, stdout); diff != "" || code != 0 {
				t.Errorf("code %d, stderr %q, output (-want +got):\n%s", code, stderr, diff)
			}
		})
	}
}

func TestFlagsOfOpenShift3AreAccepted(t *testing.T) {
	for args, want := range map[string]string{
		"get pods --loglevel=8": "get pods --v=8",
		"get --loglevel 8 pods": "get --v 8 pods",
		"status -v":             "status --suggest",
		"get --logspec=a=4":     "get --vmodule=a=4",
		"status -v -n shop":     "status --suggest -n shop",
		"status -v 8":           "status -v 8",
		"get pods -v":           "get pods -v",
		"rsh a -- status -v":    "rsh a -- status -v",
		"exec a -- --loglevel":  "exec a -- --loglevel",
		"set deployment-hook dc/a --pre -v data -- x": "set deployment-hook dc/a --pre --volumes data -- x",
		"set deployment-hook dc/a --pre -v 8 -- x":    "set deployment-hook dc/a --pre -v 8 -- x",
	} {
		current, notes := oldFlags(strings.Fields(args))
		if got := strings.Join(current, " "); got != want {
			t.Errorf("oc %s: oc %s, want oc %s", args, got, want)
		}
		if shorthand := strings.Contains(args, " -v") && args != want; shorthand != (len(notes) == 1) {
			t.Errorf("oc %s: notes %q", args, notes)
		}
	}
}

func TestDryRunAcceptsBooleans(t *testing.T) {
	for _, line := range []string{"create configmap settings --dry-run -o name", "create secret generic key --dry-run -o name", "create sa robot --dry-run=true -o name"} {
		if out, stderr, code := client(t, "oc", nil, strings.Fields(line)...); code != 0 || out == "" || stderr != "" {
			t.Errorf("oc %s: code %d, %s, %s", line, code, out, stderr)
		}
	}
}

func TestHostClusterIsUsedWithoutKubeconfig(t *testing.T) {
	dataDir, kubeconfig := t.TempDir(), filepath.Join(t.TempDir(), "own")
	writeKubeconfig(t, filepath.Join(dataDir, "admin.kubeconfig"), "https://host:8443")
	writeKubeconfig(t, kubeconfig, "https://own:6443")
	show := []string{"config", "view", "-o", "jsonpath={.clusters[*].cluster.server}"}
	tests := []struct {
		name string
		env  []string
		args []string
		want string
	}{
		{"no kubeconfig and no flags", nil, show, "https://host:8443"},
		{"KUBECONFIG wins", []string{"KUBECONFIG=" + kubeconfig}, show, "https://own:6443"},
		{"--kubeconfig wins", nil, append(slices.Clone(show), "--kubeconfig", kubeconfig), "https://own:6443"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stdout, stderr, _ := client(t, "oc", append(tt.env, "SLIPWAY_DATA_DIR="+dataDir), tt.args...)
			if stdout != tt.want {
				t.Errorf("server %q, want %q; stderr %q", stdout, tt.want, stderr)
			}
		})
	}
}

func writeKubeconfig(t *testing.T, path, server string) {
	t.Helper()
	content := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters:\n- name: c\n  cluster: {server: %q}\n", server)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
