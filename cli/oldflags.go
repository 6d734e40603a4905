package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// oldFlag is an OpenShift 3 flag that kubectl no longer has. Commands accept the flag, print the
// reason why it has no effect, and ignore it.
type oldFlag struct {
	name, reason string
	boolean      bool
	commands     string // comma-separated paths of commands, relative to the root
}

const (
	noInitializers = "initializers no longer exist, and all objects are included"
	noGenerators   = "there is only one generator"
	noHeapster     = "the command gets usage from the metrics API"
	noRegistry     = "the command gets the image's manifest from the cluster"
)

// flagsWithoutEffect returns the flags that commands accept but ignore.
func flagsWithoutEffect() []oldFlag {
	const create = "create clusterrolebinding,create configmap,create deployment,create namespace,create poddisruptionbudget," +
		"create priorityclass,create quota,create rolebinding,create secret docker-registry,create secret generic," +
		"create secret tls,create service clusterip,create service externalname,create service loadbalancer," +
		"create service nodeport,create serviceaccount,autoscale"
	return []oldFlag{
		{"include-uninitialized", noInitializers, true, "annotate,apply,apply edit-last-applied,delete,describe,edit,get,label,set image,set resources"},
		{"use-openapi-print-columns", "the server prints tables", true, "get"},
		{"generator", noGenerators, false, create},
		{"service-generator", noGenerators, false, "run"},
		{"validate", "the server validates routes", true, "create route edge,create route passthrough,create route reencrypt"},
		{"validate", "the command contacts no server", true, "convert"},
		{"local", "the command contacts no server", true, "convert"},
		{"output-version", "objects have the version that the cluster serves", false, "convert"},
		{"registry-url", noRegistry, false, "adm verify-image-signature"},
		{"insecure", noRegistry, true, "adm verify-image-signature"},
		{"heapster-namespace", noHeapster, false, "adm top node,adm top pod"},
		{"heapster-port", noHeapster, false, "adm top node,adm top pod"},
		{"heapster-scheme", noHeapster, false, "adm top node,adm top pod"},
		{"heapster-service", noHeapster, false, "adm top node,adm top pod"},
	}
}

// printingCommands returns the commands that accept OpenShift 3's flags for table output.
func printingCommands() []string {
	return []string{
		"adm ipfailover", "adm manage-node", "adm migrate image-references", "adm migrate legacy-hpa", "adm migrate storage",
		"adm policy reconcile-sccs", "adm registry", "adm router", "debug", "ex ipfailover",
	}
}

// acceptOldFlags adds flags of OpenShift 3 that have a different name in kubectl or no longer have
// an effect.
func acceptOldFlags(root *cobra.Command) {
	for _, old := range flagsWithoutEffect() {
		for path := range strings.SplitSeq(old.commands, ",") {
			flags := flagsOf(root, path)
			if flags == nil || flags.Lookup(old.name) != nil {
				continue
			}
			if old.boolean {
				flags.Bool(old.name, false, old.reason)
			} else {
				flags.String(old.name, "", old.reason)
			}
			util.CheckErr(flags.MarkDeprecated(old.name, "it has no effect: "+old.reason))
		}
	}
	for _, path := range printingCommands() {
		if command, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
			objects.AddOldPrintFlags(command)
		}
	}
	for _, path := range []string{"import-image", "secrets unlink"} {
		if command, rest, err := root.Find(strings.Fields(path)); err == nil && len(rest) == 0 {
			objects.AddPrintFlagsWithoutEffect(command)
		}
	}
	if flags := flagsOf(root, "apply"); flags != nil && flags.Lookup("prune-allowlist") != nil {
		alias := *flags.Lookup("prune-allowlist")
		alias.Name, alias.Hidden = "prune-whitelist", true
		flags.AddFlag(&alias)
	}
	acceptBooleanDryRun(root)
}

// acceptBooleanDryRun makes --dry-run accept boolean values, or no value, without a warning, as in
// OpenShift 3. kubectl prints a warning each time.
func acceptBooleanDryRun(command *cobra.Command) {
	if flag := command.Flags().Lookup("dry-run"); flag != nil && flag.NoOptDefVal == "unchanged" {
		flag.Value = booleanDryRun{flag.Value}
	}
	for _, child := range command.Commands() {
		acceptBooleanDryRun(child)
	}
}

// booleanDryRun is the value of --dry-run. It translates booleans to kubectl's values.
type booleanDryRun struct{ pflag.Value }

// Set sets the value. kubectl passes "unchanged" if the flag has no value.
func (v booleanDryRun) Set(text string) error {
	switch text {
	case "true", "unchanged":
		text = "client"
	case "false":
		text = "none"
	}
	return v.Value.Set(text)
}

// flagsOf returns the flags of the command at a path, or nil if no such command exists.
func flagsOf(root *cobra.Command, path string) *pflag.FlagSet {
	command, rest, err := root.Find(strings.Fields(path))
	if err != nil || len(rest) > 0 {
		return nil
	}
	return command.Flags()
}
