package command

import (
	"errors"
	"fmt"
	"io"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/descheduler"
)

// requestsPerSecond is the maximum rate of requests to the API server.
const requestsPerSecond = 50

// NewDescheduler returns the `descheduler` verb, which is also the program in the descheduler's
// image.
func NewDescheduler() *cobra.Command {
	var kubeconfig, policyFile string
	var dryRun bool
	command := &cobra.Command{
		Use:   "descheduler --policy-config-file FILE",
		Short: "Evict pods that fit better on other nodes, once",
		Long: "Evict pods that fit better on other nodes, once. The policy is a DeschedulerPolicy of OpenShift 3.11\n" +
			"(descheduler/v1alpha1) or of Kubernetes (descheduler/v1alpha2). The command runs in a pod of the image\n" +
			"localhost/slipway-descheduler, or with a kubeconfig. To evict pods regularly, set slipway.descheduler in master-config.yaml.",
		GroupID:       "host",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if policyFile == "" {
				return errors.New("--policy-config-file is required")
			}
			policy, err := descheduler.ReadPolicy(policyFile)
			if err != nil {
				return err
			}
			config, err := clusterConfig(kubeconfig)
			if err != nil {
				return err
			}
			config = rest.CopyConfig(config)
			config.QPS, config.Burst = requestsPerSecond, requestsPerSecond
			client, err := kubernetes.NewForConfig(config)
			if err != nil {
				return fmt.Errorf("connect to the cluster: %w", err)
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGTERM, syscall.SIGINT)
			defer stop()
			summary := evictionSummary{out: cmd.OutOrStdout(), dryRun: dryRun}
			d := &descheduler.Descheduler{Client: client, Policy: policy, DryRun: dryRun, Report: summary.add}
			return summary.end(d.Deschedule(ctx))
		},
	}
	flags := command.Flags()
	flags.StringVar(&policyFile, "policy-config-file", "", "file with the DeschedulerPolicy")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "kubeconfig of the cluster; the default is the pod's service account")
	flags.BoolVar(&dryRun, "dry-run", false, "print the pods that the policy would evict, without evicting them")
	return command
}

// evictionSummary prints evictions and counts the successful evictions.
type evictionSummary struct {
	out    io.Writer
	dryRun bool
	count  int
}

func (s *evictionSummary) add(eviction descheduler.Eviction) {
	if eviction.Failure == "" {
		s.count++
	}
	fmt.Fprintln(s.out, eviction)
}

func (s *evictionSummary) end(err error) error {
	if errors.Is(err, descheduler.ErrFewNodes) {
		fmt.Fprintln(s.out, "nothing to do:", err)
		return nil
	}
	suffix := ""
	if s.dryRun {
		suffix = " (dry run)"
	}
	fmt.Fprintf(s.out, "evicted pods: %d%s\n", s.count, suffix)
	return err
}
