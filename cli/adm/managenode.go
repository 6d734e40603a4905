package adm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/kubectl/pkg/cmd/get"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/drain"
)

// manageNode holds the state of `oc adm manage-node`, which lists the pods on nodes or marks nodes
// as schedulable or unschedulable.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 2.7 and 2.8.
type manageNode struct {
	selected bool // true if --selector is set
	factory  util.Factory
	client   kubernetes.Interface
	streams  genericiooptions.IOStreams
	print    *genericclioptions.PrintFlags

	names                 []string
	selector, podSelector string
	listPods, schedulable bool
}

func newManageNode(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	m := &manageNode{factory: factory, streams: streams, print: genericclioptions.NewPrintFlags("").WithTypeSetter(scheme.Scheme)}
	command := &cobra.Command{
		Use:   "manage-node NODE... | --selector=SELECTOR {--list-pods | --schedulable=BOOLEAN}",
		Short: "List the pods of nodes, or mark nodes as schedulable or unschedulable",
		Long:  "Manage nodes: list their pods, or mark them as schedulable or unschedulable.\n\nTo move the pods of a node to others, use oc adm drain.",
		Example: `  # List the pods of two nodes
  oc adm manage-node node1 node2 --list-pods

  # Stop scheduling pods on the nodes with a label
  oc adm manage-node --selector=rack=r7 --schedulable=false`,
		Run: func(command *cobra.Command, args []string) {
			m.names = args
			util.CheckErr(m.validate(command))
			util.CheckErr(m.complete())
			util.CheckErr(m.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&m.listPods, "list-pods", false, "List the pods that run on the nodes.")
	flags.BoolVar(&m.schedulable, "schedulable", false, "Mark the nodes as schedulable, or with =false as unschedulable.")
	flags.StringVar(&m.selector, "selector", "", "Label selector of nodes, instead of their names.")
	flags.StringVar(&m.podSelector, "pod-selector", "", "Label selector of the listed pods.")
	m.print.AddFlags(command)
	return command
}

// complete creates the client.
func (m *manageNode) complete() (err error) {
	m.client, err = m.factory.KubernetesClientSet()
	return err
}

// validate checks the arguments and flags.
func (m *manageNode) validate(command *cobra.Command) error {
	m.selected = command.Flags().Changed("selector") // an empty selector selects all nodes
	switch mark := command.Flags().Changed("schedulable"); {
	case len(m.names) == 0 && !m.selected:
		return errors.New("specify nodes by name, or with --selector")
	case len(m.names) > 0 && m.selected:
		return errors.New("use either node names or --selector, not both")
	case mark == m.listPods:
		return errors.New("specify an action: --list-pods or --schedulable=BOOLEAN")
	case m.podSelector != "" && !m.listPods:
		return errors.New("--pod-selector needs --list-pods; to move pods to other nodes, use oc adm drain")
	}
	return nil
}

func (m *manageNode) run(ctx context.Context) error {
	nodes, err := m.nodes(ctx)
	if err != nil {
		return err
	}
	if m.listPods {
		return m.list(ctx, nodes)
	}
	helper := &drain.Helper{Ctx: ctx, Client: m.client}
	for i := range nodes {
		if err := drain.RunCordonOrUncordon(helper, &nodes[i], !m.schedulable); err != nil {
			return fmt.Errorf("mark node %q: %w", nodes[i].Name, err)
		}
	}
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Name)
	}
	return m.show(append([]string{"nodes"}, names...), map[string]string{"output": *m.print.OutputFormat})
}

// nodes returns the selected nodes.
func (m *manageNode) nodes(ctx context.Context) ([]corev1.Node, error) {
	if m.selected {
		list, err := m.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: m.selector})
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		if len(list.Items) == 0 {
			return nil, fmt.Errorf("no node matches the selector %q; to list labels, use oc get nodes --show-labels", m.selector)
		}
		return list.Items, nil
	}
	var nodes []corev1.Node
	for _, name := range m.names {
		node, err := m.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, *node)
	}
	return nodes, nil
}

// list prints the pods on the nodes, in all namespaces. It prints one table for each node or, if -o
// is set, a single list.
func (m *manageNode) list(ctx context.Context, nodes []corev1.Node) error {
	all := &corev1.PodList{}
	for _, node := range nodes {
		onNode := fields.OneTermEqualSelector("spec.nodeName", node.Name).String()
		if *m.print.OutputFormat == "" {
			fmt.Fprintf(m.streams.ErrOut, "\nListing matched pods on node: %s\n\n", node.Name)
			err := m.show([]string{"pods"}, map[string]string{"all-namespaces": "true", "selector": m.podSelector, "field-selector": onNode})
			if err != nil {
				return err
			}
			continue
		}
		pods, err := m.client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: m.podSelector, FieldSelector: onNode})
		if err != nil {
			return fmt.Errorf("list pods of node %q: %w", node.Name, err)
		}
		all.Items = slices.Concat(all.Items, pods.Items)
	}
	if *m.print.OutputFormat == "" {
		return nil
	}
	printer, err := m.print.ToPrinter()
	if err != nil {
		return err
	}
	return printer.PrintObj(all, m.streams.Out)
}

// show prints objects as `oc get` does.
func (m *manageNode) show(args []string, flags map[string]string) error {
	command := get.NewCmdGet("oc", m.factory, m.streams)
	for name, value := range flags {
		if value == "" {
			continue
		}
		if err := command.Flags().Set(name, value); err != nil {
			return fmt.Errorf("set flag --%s: %w", name, err)
		}
	}
	command.Run(command, args)
	return nil
}
