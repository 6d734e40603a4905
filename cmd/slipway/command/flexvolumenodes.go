package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/kube/volumeplugin"
	"github.com/slipway-platform/slipway/platform/host"
)

// nodeDriver is a driver and the node that reports it.
type nodeDriver struct {
	Node string `json:"node"`
	volumeplugin.ReportedDriver
}

// listNodeDrivers returns the drivers that the cluster's nodes report in their annotations.
func listNodeDrivers(ctx context.Context, h *host.Host) ([]nodeDriver, error) {
	config, err := h.AdminClient()
	if err != nil {
		return nil, fmt.Errorf("list drivers on all nodes: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("list drivers on all nodes: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list drivers on all nodes: %w", err)
	}
	all := []nodeDriver{}
	for _, node := range nodes.Items {
		content := node.Annotations[volumeplugin.DriversAnnotation]
		if content == "" {
			continue // the node has never had a driver
		}
		var drivers []volumeplugin.ReportedDriver
		if err := json.Unmarshal([]byte(content), &drivers); err != nil {
			return nil, fmt.Errorf("read drivers of node %q: %w", node.Name, err)
		}
		for _, driver := range drivers {
			all = append(all, nodeDriver{node.Name, driver})
		}
	}
	return all, nil
}

func printNodeDrivers(out io.Writer, drivers []nodeDriver) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NODE\tDRIVER\tSTATE\tVERSION\tCAPABILITIES")
	for _, d := range drivers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%.12s\t%s\n", d.Node, d.Driver, d.State, d.Version, d.Capabilities)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, d := range drivers {
		if d.Error != "" {
			fmt.Fprintf(out, "\n%s: %s: %s\n", d.Node, d.Driver, d.Error)
		}
	}
	return nil
}
