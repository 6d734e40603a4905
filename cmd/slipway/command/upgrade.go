package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/platform/preflight"
	"github.com/slipway-platform/slipway/platform/snapshot"
	"github.com/slipway-platform/slipway/platform/upgrade"
)

// upgradeTimeout is the timeout for the check's requests.
const upgradeTimeout = 30 * time.Second

// upgradeCommand returns the command that checks whether this program can replace the running
// program.
func upgradeCommand(opts *options) *cobra.Command {
	check := false
	command := &cobra.Command{
		Use: "upgrade --check", Short: "List the obstacles to an upgrade of the cluster to this program", GroupID: "host", Args: cobra.NoArgs,
		Long: "List the obstacles to an upgrade of the cluster to this program. Run the new program on a master, from any directory, while\n" +
			"the previous one runs. It changes nothing. The exit status is 1 if there is an error; warnings need attention.",
		Example: "  ./slipway upgrade --check",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !check {
				return errors.New("the only action is --check; to upgrade, install the new program on one host after the other, the masters first, and restart Slipway there")
			}
			h, err := opts.loadMaster()
			if err != nil {
				return fmt.Errorf("this program does not accept the configuration: %w", err)
			}
			return checkUpgrade(cmd, h)
		},
	}
	command.Flags().BoolVar(&check, "check", false, "check the cluster")
	return command
}

// errUpgrade makes `slipway upgrade --check` exit with status 1 after it has printed the problems.
var errUpgrade = errors.New("the cluster cannot be upgraded to this program yet: fix the errors above and run the command again")

// checkUpgrade prints the problems with the cluster and this machine that prevent an upgrade.
func checkUpgrade(cmd *cobra.Command, h *host.Host) error {
	ctx, cancel := context.WithTimeout(cmd.Context(), upgradeTimeout)
	defer cancel()
	state, err := upgradeState(ctx, h)
	if err != nil {
		return err
	}
	problems, err := upgrade.Check(*state)
	if err != nil {
		return err
	}
	machine, err := h.MachineProblems(ctx)
	if err != nil {
		return err
	}
	problems = append(problems, machine...)
	if err := preflight.Print(cmd.OutOrStdout(), problems); err != nil {
		return err
	}
	if preflight.Failed(problems) {
		return errUpgrade
	}
	fmt.Fprintf(cmd.OutOrStdout(), "Nothing prevents the upgrade from Kubernetes %s to %s.\n", state.Server, state.Program)
	return nil
}

// upgradeState reads the cluster's state.
func upgradeState(ctx context.Context, h *host.Host) (*upgrade.State, error) {
	_, client, err := connectAdmin(h)
	if err != nil {
		return nil, err
	}
	server, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("request API server version: %w", err)
	}
	state := &upgrade.State{Server: server.GitVersion, Program: kube.Version(), Now: time.Now(), Members: map[string]string{}}
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	budgets, err := client.PolicyV1().PodDisruptionBudgets(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list disruption budgets: %w", err)
	}
	state.Nodes, state.Budgets = nodes.Items, budgets.Items
	members, err := h.EtcdMembers().States(ctx)
	if err != nil {
		return nil, err
	}
	for _, member := range members {
		state.Members[member.Name] = member.Problem()
	}
	files, err := snapshot.List(h.Master.Slipway.EtcdSnapshots.Directory)
	if err != nil {
		return nil, err
	}
	if len(files) > 0 {
		state.Snapshot = files[len(files)-1].Time
	}
	metrics, err := client.Discovery().RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("request API server metrics: %w", err)
	}
	state.Deprecated, err = deprecatedAPIs(metrics)
	return state, err
}

// deprecatedAPIs returns the deprecated APIs that clients have requested since the API server
// started. It extracts them from the API server's metrics.
func deprecatedAPIs(metrics []byte) (apis []upgrade.API, err error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return nil, fmt.Errorf("read API server metrics: %w", err)
	}
	for _, metric := range families["apiserver_requested_deprecated_apis"].GetMetric() {
		labels := map[string]string{}
		for _, label := range metric.GetLabel() {
			labels[label.GetName()] = label.GetValue()
		}
		name := labels["resource"] + "." + labels["version"]
		if labels["group"] != "" {
			name += "." + labels["group"]
		}
		if _, err := strconv.ParseFloat(labels["removed_release"], 64); err == nil {
			apis = append(apis, upgrade.API{Name: name, Removed: labels["removed_release"]})
		}
	}
	return apis, nil
}
