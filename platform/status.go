package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

// errNotReady makes `slipway status` end with 1 after it has printed what there is to say.
var errNotReady = errors.New("not everything is ready")

func statusCommand(opts *options) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:     "status",
		Short:   "Print the health of each part and node",
		Long:    "Print the health of each part and node. Ends with 0 when everything is ready and with 1 when it is not.",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.look(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			status, err := newClient(h.socket()).status(cmd.Context())
			if err != nil {
				return err
			}
			status.Nodes, status.Notes = observe(cmd.Context(), h.adminKubeconfig())
			switch output {
			case "json":
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				err = encoder.Encode(status)
			case "":
				err = printStatus(cmd.OutOrStdout(), status)
			default:
				return fmt.Errorf("output format %q is unknown; use json or leave it out", output)
			}
			if err == nil && !status.Ready {
				return errNotReady
			}
			return err
		},
	}
	command.Flags().StringVarP(&output, "output", "o", "", "output format: json")
	return command
}

func partsCommand(opts *options) *cobra.Command {
	return &cobra.Command{
		Use:     "parts",
		Short:   "Print what this host is composed of: each part, its process, what it waits for, its state",
		GroupID: "look",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.look(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			status, err := newClient(h.socket()).status(cmd.Context())
			if errors.Is(err, errNotRunning) {
				status = Status{Processes: composition()}
			} else if err != nil {
				return err
			}
			return printParts(cmd.OutOrStdout(), status.Processes)
		},
	}
}

func printParts(out io.Writer, processes []ProcessStatus) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tPART\tWAITS FOR\tSTATE\tSTARTED IN")
	for _, process := range processes {
		for _, part := range process.Parts {
			started := ""
			if part.State == Ready {
				started = fmt.Sprintf("%.1fs", part.StartSeconds)
			}
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\n", process.Name, part.Name, strings.Join(part.After, ", "), part.State, started)
		}
	}
	return table.Flush()
}

func printStatus(out io.Writer, status Status) error {
	fmt.Fprintf(out, "Slipway %s   data %s   up %s\n\n", status.Version, status.DataDir, age(status.Started))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS / PART\tSTATE\tSINCE\tSTARTED IN\tRESTARTS\tPID")
	for _, process := range status.Processes {
		fmt.Fprintf(table, "%s\t%s\t%s\t\t%d\t%d\n", process.Name, process.State, age(process.Since), process.Restarts, process.PID)
		for _, part := range process.Parts {
			started := ""
			if part.State == Ready {
				started = fmt.Sprintf("%.1fs", part.StartSeconds)
			}
			fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t\t\n", part.Name, part.State, age(part.Since), started)
		}
	}
	fmt.Fprintln(table, "\t\t\t\t\t")
	fmt.Fprintln(table, "NODE\tREADY\tADDRESS\tPODS\t\t")
	for _, node := range status.Nodes {
		fmt.Fprintf(table, "%s\t%t\t%s\t%d\t\t\n", node.Name, node.Ready, node.Address, node.Pods)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, process := range status.Processes {
		if process.LastError != "" {
			fmt.Fprintf(out, "\n%s ended last with: %s\n  see: slipway logs %s\n", process.Name, process.LastError, process.Name)
		}
	}
	for _, process := range status.Processes {
		for _, part := range process.Parts {
			if part.Note != "" {
				fmt.Fprintf(out, "\n%s: %s\n", part.Name, part.Note)
			}
		}
	}
	for _, node := range status.Nodes {
		if !node.Ready {
			fmt.Fprintf(out, "\nnode %s is not ready: %s\n", node.Name, node.Message)
		}
		for _, why := range node.Refuses {
			fmt.Fprintf(out, "\nnode %s takes no more pods: %s\n", node.Name, why)
		}
	}
	for _, note := range status.Notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
	return nil
}

// age is how long ago a moment was, in the unit that a person would use.
func age(moment time.Time) string {
	if moment.IsZero() {
		return ""
	}
	return time.Since(moment).Round(time.Second).String()
}

// observe asks the API for the nodes, and for what else the administrator should know. An API that does not answer has
// neither: the parts' table says why.
func observe(ctx context.Context, kubeconfig string) ([]NodeStatus, []string) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil
	}
	return nodes(ctx, client), unenforcedNotes(ctx, config)
}

// nodes are the nodes that the API has.
func nodes(ctx context.Context, client kubernetes.Interface) []NodeStatus {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil
	}
	pods := map[string]int{}
	if all, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{}); err == nil {
		for _, pod := range all.Items {
			pods[pod.Spec.NodeName]++
		}
	}
	var found []NodeStatus
	for _, node := range list.Items {
		status := NodeStatus{Name: node.Name, Pods: pods[node.Name], Refuses: refusals(node)}
		for _, condition := range node.Status.Conditions {
			if condition.Type == corev1.NodeReady {
				status.Ready, status.Message = condition.Status == corev1.ConditionTrue, condition.Message
			}
		}
		for _, address := range node.Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				status.Address = address.Address
			}
		}
		found = append(found, status)
	}
	return found
}

// refusals are the reasons for which the scheduler gives a node no pods.
func refusals(node corev1.Node) []string {
	remedies := map[corev1.NodeConditionType]string{
		corev1.NodeDiskPressure: "its disk is nearly full; free some of it, or lower eviction-hard (imagefs.available, nodefs.available) " +
			"below kubeletArguments in node-config.yaml",
		corev1.NodeMemoryPressure: "its memory is nearly used up; `oc describe node` shows what its pods ask for",
		corev1.NodePIDPressure:    "nearly all of its process numbers are used",
	}
	var found []string
	for _, condition := range node.Status.Conditions {
		if remedy := remedies[condition.Type]; remedy != "" && condition.Status == corev1.ConditionTrue {
			found = append(found, remedy)
		}
	}
	if node.Spec.Unschedulable {
		found = append(found, "it is marked as unschedulable; undo it with: oc adm uncordon "+node.Name)
	}
	return found
}
