package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cli"
	"github.com/slipway-platform/slipway/cmd/slipway/command"
)

// TestCommandsOfHostToolsHaveCounterparts checks the table of tools in docs/compat.md. The table
// must list all programs that administrators run on hosts according to OpenShift 3's documentation.
// The commands that replace these programs must exist.
func TestCommandsOfHostToolsHaveCounterparts(t *testing.T) {
	content, err := os.ReadFile("../../docs/compat.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(content), "\n## Paths and tools of the host\n")
	section, _, _ = strings.Cut(section, "\n## ")
	code := regexp.MustCompile("`([^`]+)`")
	programs, counterparts := map[string]bool{}, 0
	roots := map[string]*cobra.Command{"slipway": command.New(), "oc": cli.Tree("oc")}
	for line := range strings.Lines(section) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		for _, match := range code.FindAllStringSubmatch(cells[1], -1) {
			programs[strings.Fields(match[1])[0]] = true
		}
		for _, match := range code.FindAllStringSubmatch(cells[2], -1) {
			words := strings.Fields(match[1])
			root := roots[words[0]]
			if root == nil {
				continue
			}
			counterparts++
			if !exists(root, words[1:]) {
				t.Errorf("there is no command %q", match[1])
			}
		}
	}
	for _, program := range strings.Fields("systemctl docker docker-storage-setup rpm yum subscription-manager restorecon " +
		"update-ca-trust openssl ss iptables iptables-save tcpdump iperf3 neutron setcap") {
		if !programs[program] {
			t.Errorf("the table has no %s", program)
		}
	}
	if counterparts == 0 {
		t.Error("the table names no command of slipway or oc")
	}
}

// exists reports whether words consist of an existing verb below root and of flags that this verb
// has, as in etcd health --all.
func exists(root *cobra.Command, words []string) bool {
	verb, flags, err := root.Find(words)
	if err != nil || verb == root {
		return false
	}
	for _, flag := range flags {
		if !strings.HasPrefix(flag, "--") || verb.Flag(strings.TrimPrefix(flag, "--")) == nil {
			return false
		}
	}
	return true
}
