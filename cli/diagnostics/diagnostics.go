// Package diagnostics implements `oc adm diagnostics`, which checks the client's configuration, a
// cluster's objects, and its network.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Diagnostics tool.
package diagnostics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubectl/pkg/cmd/util"
)

// networkCheckName is the name of the diagnostic that creates objects.
const networkCheckName = "NetworkCheck"

// check is one diagnostic.
type check struct {
	name, short string
	// run returns the problems that the check finds. For an OpenShift 3 diagnostic that has nothing
	// to check in Slipway, run is nil, and elsewhere explains where the user can find these
	// problems.
	run       func(context.Context, *environment) ([]problem, error)
	elsewhere string
}

// environment contains the clients and flags that the checks use.
type environment struct {
	factory      util.Factory
	kubernetes   kubernetes.Interface
	dynamic      dynamic.Interface
	masterConfig string
	// external is the HOST:PORT of a server outside the cluster, or "".
	external string
}

// checks returns the counterparts of all OpenShift 3 diagnostics.
func checks() []check {
	const (
		status = "slipway status reports it"
		logs   = "slipway logs prints the logs"
	)
	return []check{
		{"AggregatedLogging", "Check aggregated logging", nil, "Slipway has no aggregated logging"},
		{"AnalyzeLogs", "Check the logs of systemd services", nil, logs},
		{"AppCreate", "Create an application and check it", nil, "oc new-app static-page creates an application"},
		{"ClusterRegistry", "Check the image registry", clusterRegistry, ""},
		{"ClusterRoleBindings", "Check that the default cluster role bindings exist", clusterRoleBindings, ""},
		{"ClusterRoles", "Check that the default cluster roles exist and have their rules", clusterRoles, ""},
		{"ClusterRouter", "Check that a router serves each route", clusterRouter, ""},
		{"ConfigContexts", "Check the contexts of the kubeconfig", configContexts, ""},
		{"DiagnosticPod", "Check the cluster from a pod", nil, status},
		{"EtcdWriteVolume", "Measure writes of etcd", nil, "etcd's own metrics contain these times"},
		{"MasterNode", "Check that the master is a node", nil, "each master of Slipway is a node"},
		{"MetricsApiProxy", "Check that the metrics of all nodes are served", nodeUsage, ""},
		{networkCheckName, "Check the network between pods, services, nodes and the outside, from two temporary projects", networkCheck, ""},
		{"NodeDefinitions", "Check that nodes are ready and schedulable", nodeDefinitions, ""},
		{"RouteCertificateValidation", "Check the certificates of routes", routeCertificates, ""},
		{"SecurityContextConstraints", "Check that the default security context constraints exist", constraints, ""},
		{"ServiceExternalIPs", "Check the external addresses of services against the master's configuration", externalIPs, ""},
		{"UnitStatus", "Check systemd services", nil, status},
	}
}

// New returns the `oc adm diagnostics` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use:   "diagnostics",
		Short: "Diagnose common cluster problems",
		Long: `Check the client's configuration, the objects of the cluster and its network, and print problems with remedies.

Without arguments, the command runs all checks. slipway status reports the problems of the host. NetworkCheck creates two projects with pods on all
nodes, and deletes them; the other checks change nothing. Each problem has an ID, such as node-not-ready, a reason and a remedy.`,
		Example: `  # Run all checks, and change nothing
  oc adm diagnostics --prevent-modification

  # Check only the default cluster roles
  oc adm diagnostics clusterroles

  # Check only the network, with connections to a server outside the cluster
  oc adm diagnostics networkcheck --external-address=www.example.com:443`,
		Args: cobra.ArbitraryArgs, // start rejects arguments, with OpenShift 3's message
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(start(command, factory, streams, args, checks()))
		},
	}
	addFlags(command)
	all := &cobra.Command{
		Use: "all", Short: "Run all checks",
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(start(command, factory, streams, args, checks()))
		},
	}
	addFlags(all)
	command.AddCommand(all)
	for _, item := range checks() {
		child := &cobra.Command{
			Use: strings.ToLower(item.name), Aliases: []string{item.name}, Short: item.short,
			Run: func(command *cobra.Command, args []string) {
				util.CheckErr(start(command, factory, streams, args, []check{item}))
			},
		}
		addFlags(child)
		command.AddCommand(child)
	}
	return command
}

func addFlags(command *cobra.Command) {
	command.Flags().String("master-config", "", "File with the MasterConfig, for the check of external addresses.")
	command.Flags().Bool("prevent-modification", false, "Skip NetworkCheck, which creates projects.")
	command.Flags().String("external-address", "", "HOST:PORT of a server outside the cluster, for NetworkCheck. Without it, NetworkCheck omits that connection.")
	acceptOldFlags(command.Flags())
}

// start creates the clients and runs checks.
func start(command *cobra.Command, factory util.Factory, streams genericiooptions.IOStreams, args []string, selected []check) error {
	if len(args) > 0 {
		return fmt.Errorf("Unexpected command line argument(s): %s", strings.Join(args, " "))
	}
	env := &environment{
		factory: factory, masterConfig: util.GetFlagString(command, "master-config"), external: util.GetFlagString(command, "external-address"),
	}
	if _, _, err := net.SplitHostPort(env.external); env.external != "" && err != nil {
		return fmt.Errorf("--external-address must be HOST:PORT: %w", err)
	}
	if util.GetFlagBool(command, "prevent-modification") {
		selected = withoutModification(selected)
	}
	var err error
	if env.kubernetes, err = factory.KubernetesClientSet(); err != nil {
		return err
	}
	if env.dynamic, err = factory.DynamicClient(); err != nil {
		return err
	}
	return run(command.Context(), streams, env, selected)
}

// withoutModification returns the checks that create no objects.
func withoutModification(checks []check) (kept []check) {
	for _, item := range checks {
		if item.name == networkCheckName {
			item.run, item.elsewhere = nil, "it creates projects, which --prevent-modification does not allow"
		}
		kept = append(kept, item)
	}
	return kept
}

// errProblems is returned if the checks find problems. Before that, run prints the problems.
var errProblems = errors.New("the diagnostics found problems")

// run runs the checks. It returns an error if a check finds a problem, or if there is nothing to
// check.
func run(ctx context.Context, streams genericiooptions.IOStreams, env *environment, selected []check) error {
	problems, skipped := 0, 0
	for _, check := range selected {
		if check.run == nil {
			skipped++
			fmt.Fprintf(streams.Out, "[Note] Skipping diagnostic: %s\n       Description: %s\n       Because: %s\n\n", check.name, check.short, check.elsewhere)
			continue
		}
		fmt.Fprintf(streams.Out, "[Note] Running diagnostic: %s\n       Description: %s\n\n", check.name, check.short)
		results, err := check.run(ctx, env)
		if err != nil {
			results = append(results, problem{unchecked, err.Error()})
		}
		slices.SortFunc(results, func(a, b problem) int { return strings.Compare(a.String(), b.String()) })
		for _, problem := range results {
			fmt.Fprintf(streams.Out, "ERROR: [from diagnostic %s]\n       %s\n\n", check.name, problem)
		}
		problems += len(results)
	}
	fmt.Fprintf(streams.Out, "[Note] Summary of diagnostics execution:\n[Note] Errors seen: %d\n", problems)
	switch {
	case problems > 0:
		return errProblems
	case skipped == len(selected):
		return errors.New("nothing was checked")
	}
	return nil
}
