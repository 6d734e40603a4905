package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/platform/host"
)

// supportRows is the maximum number of rows in a table, and therefore of objects.
const supportRows = "2000"

// omitted returns the resources whose tables an archive does not contain. The names of tokens are
// themselves secrets. AppliedClusterResourceQuotas only repeat the ClusterResourceQuotas for each
// project.
func omitted() []string {
	return []string{"secrets", "oauthaccesstokens", "oauthauthorizetokens", "useroauthaccesstokens", "appliedclusterresourcequotas"}
}

// clusterEvidence returns a file for each resource in the cluster. It returns no files on a host
// that is only a node, or if the API server does not respond. In these cases, it writes the reason
// to problems.
func clusterEvidence(ctx context.Context, h *host.Host, problems io.Writer) []evidence {
	if h.Joined() {
		fmt.Fprintln(problems, "cluster: this host is only a node; run the command on a master, too")
		return nil
	}
	list, err := tables(h)
	if err != nil {
		fmt.Fprintf(problems, "cluster: %v\n", err)
	}
	return list
}

func tables(h *host.Host) ([]evidence, error) {
	config, err := h.AdminClient()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.Timeout = apiTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	// Discovery can fail for some groups and succeed for others, so use the returned groups even if
	// there is an error.
	groups, err := discovery.ServerPreferredResources(client.Discovery())
	var list []evidence
	for _, group := range groups {
		for _, resource := range group.APIResources {
			if slices.Contains(resource.Verbs, "list") && !slices.Contains(omitted(), resource.Name) {
				list = append(list, tableOf(client.Discovery().RESTClient(), group.GroupVersion, resource.Name))
			}
		}
	}
	return list, err
}

// tableOf returns a file with a resource's table, as the server creates it for `oc get`.
func tableOf(client rest.Interface, version, resource string) evidence {
	prefix, group := "/apis", path.Dir(version)
	if !strings.Contains(version, "/") {
		prefix, group = "/api", "core"
	}
	return evidence{path.Join("cluster", group, resource+".txt"), func(ctx context.Context, out io.Writer) error {
		raw, err := client.Get().AbsPath(prefix, version, resource).Param("limit", supportRows).
			SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").DoRaw(ctx)
		if err != nil {
			return err
		}
		var table metav1.Table
		if err := json.Unmarshal(raw, &table); err != nil {
			return fmt.Errorf("read table: %w", err)
		}
		return printTable(out, &table)
	}}
}

// printTable prints a table in the format of `oc get --all-namespaces -o wide`.
func printTable(out io.Writer, table *metav1.Table) error {
	if len(table.Rows) == 0 {
		fmt.Fprintln(out, "No resources found")
		return nil
	}
	for i := range table.Rows {
		row := &table.Rows[i].Object
		object, err := runtime.Decode(unstructured.UnstructuredJSONScheme, row.Raw)
		if err != nil {
			return fmt.Errorf("read table object: %w", err)
		}
		row.Object = object
	}
	return printers.NewTablePrinter(printers.PrintOptions{WithNamespace: true, Wide: true}).PrintObj(table, out)
}
