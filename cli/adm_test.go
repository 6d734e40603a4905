package cli

import (
	"strings"
	"testing"
)

func TestAdmHasNodeCommands(t *testing.T) {
	for _, name := range []string{"manage-node", "cordon", "uncordon", "drain", "taint", "top", "certificate"} {
		help, stderr, code := client(t, "oc", nil, "adm", name, "-h")
		if code != 0 || !strings.Contains(help, "oc adm "+name) {
			t.Errorf("oc adm %s -h: code %d, stderr %q, its usage does not report this:\n%s", name, code, stderr, help)
		}
	}
	if _, _, code := client(t, "kubectl", nil, "adm", "drain", "-h"); code == 0 {
		t.Error("kubectl has the command adm, too")
	}
}

func TestDrainAcceptsFormerFlagName(t *testing.T) {
	_, stderr, code := client(t, "oc", nil, "adm", "drain", "--delete-local-data=perhaps", "node")
	if code == 0 || !strings.Contains(stderr, `invalid argument "perhaps" for "--delete-local-data" flag`) {
		t.Errorf("code %d, stderr %q: the flag is unknown", code, stderr)
	}
}

func TestHelpListsCommandsOfOCAndKubectl(t *testing.T) {
	help, _, _ := client(t, "oc", nil, "--help")
	for _, want := range []string{"Advanced Commands:", "\n  adm ", "\n  get ", "\n  drain ", "\n  version "} {
		if strings.Count(help, want) != 1 {
			t.Errorf("the help contains %q %d times:\n%s", want, strings.Count(help, want), help)
		}
	}
}

func TestManageNodeReportsInvalidArguments(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"--list-pods", "--selector"},
		{"a --selector=b=c --list-pods", "not both"},
		{"a", "--list-pods or --schedulable"},
		{"a --list-pods --schedulable", "--list-pods or --schedulable"},
		{"a --schedulable --pod-selector=x=y", "oc adm drain"},
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"--namespace", "a", "adm", "manage-node"}, strings.Fields(tt.args)...)...)
		if code == 0 || !strings.Contains(stderr, tt.want) {
			t.Errorf("manage-node %s: code %d, stderr %q, want %q", tt.args, code, stderr, tt.want)
		}
	}
}
