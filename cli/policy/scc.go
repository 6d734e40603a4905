package policy

import (
	"context"
	"fmt"
	"slices"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	securityv1 "github.com/openshift/api/security/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newSCC returns the commands that let a user or group use security context constraints, or no
// longer.
func newSCC(factory util.Factory, streams genericiooptions.IOStreams, name, subject string, add bool) *cobra.Command {
	var accounts []string
	short := "Remove " + subject + "s from security context constraints"
	if add {
		short = "Add " + subject + "s to security context constraints"
	}
	command := &cobra.Command{
		Use:   name + " CONSTRAINTS " + map[string]string{"user": "(USER | -z SERVICEACCOUNT)...", "group": "GROUP..."}[subject],
		Short: short,
		Run: func(command *cobra.Command, args []string) {
			if len(args) < 1 || len(args) < 2 && len(accounts) == 0 {
				util.CheckErr(util.UsageErrorf(command, "name the constraints and at least one %s", subject))
			}
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			names := slices.Clone(args[1:])
			for _, account := range accounts {
				names = append(names, serviceaccount.MakeUsername(namespace, account))
			}
			util.CheckErr(changeSCC(command.Context(), factory, args[0], subject+"s", names, add))
			what := "removed from"
			if add {
				what = "added to"
			}
			fmt.Fprintf(streams.Out, "scc %q %s: %q\n", args[0], what, names)
		},
	}
	if subject == "user" {
		command.Flags().StringSliceVarP(&accounts, "serviceaccount", "z", nil, "Service account of the current project, in place of a user.")
	}
	return command
}

// changeSCC changes one of the lists of constraints, users or groups.
func changeSCC(ctx context.Context, factory util.Factory, name, list string, subjects []string, add bool) error {
	client, err := factory.DynamicClient()
	if err != nil {
		return err
	}
	resource := client.Resource(securityv1.GroupVersion.WithResource("securitycontextconstraints"))
	found, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	present, _, err := unstructured.NestedStringSlice(found.Object, list)
	if err != nil {
		return err
	}
	changed := slices.DeleteFunc(slices.Clone(present), func(one string) bool { return slices.Contains(subjects, one) })
	if add {
		changed = append(changed, subjects...)
	}
	if err := unstructured.SetNestedStringSlice(found.Object, changed, list); err != nil {
		return err
	}
	_, err = resource.Update(ctx, found, metav1.UpdateOptions{})
	return err
}

// newWhoCan returns `who-can`: who may do something to a resource.
func newWhoCan(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	everywhere := false
	command := &cobra.Command{
		Use:   "who-can VERB RESOURCE [NAME]",
		Short: "List who can perform the specified action on a resource",
		Args:  cobra.RangeArgs(2, 3),
		Run: func(command *cobra.Command, args []string) {
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			mapper, err := factory.ToRESTMapper()
			util.CheckErr(err)
			resource, err := mapper.ResourceFor(schema.ParseGroupResource(args[1]).WithVersion(""))
			util.CheckErr(err)
			action := map[string]any{
				"apiVersion": authorizationv1.GroupVersion.String(), "kind": "LocalResourceAccessReview", "namespace": namespace,
				"verb": args[0], "resourceAPIGroup": resource.Group, "resource": resource.Resource,
			}
			if len(args) == 3 {
				action["resourceName"] = args[2]
			}
			plural := "localresourceaccessreviews"
			if everywhere {
				action["kind"], action["namespace"], namespace, plural = "ResourceAccessReview", "", "", "resourceaccessreviews"
			}
			client, err := factory.DynamicClient()
			util.CheckErr(err)
			answer, err := client.Resource(authorizationv1.GroupVersion.WithResource(plural)).Namespace(namespace).
				Create(command.Context(), &unstructured.Unstructured{Object: action}, metav1.CreateOptions{})
			util.CheckErr(err)
			printWhoCan(streams, answer.Object, namespace, args[0], resource.GroupResource())
		},
	}
	command.Flags().BoolVar(&everywhere, "all-namespaces", false, "Who can in all projects.")
	return command
}

func printWhoCan(streams genericiooptions.IOStreams, answer map[string]any, namespace, verb string, resource schema.GroupResource) {
	if namespace == "" {
		namespace = "<all>"
	}
	fmt.Fprintf(streams.Out, "Namespace: %s\nVerb:      %s\nResource:  %s\n", namespace, verb, resource)
	for _, list := range []struct{ title, key string }{{"Users", "users"}, {"Groups", "groups"}} {
		names, _, _ := unstructured.NestedStringSlice(answer, list.key)
		if len(names) == 0 {
			names = []string{"none"}
		}
		for i, name := range names {
			if i == 0 {
				fmt.Fprintf(streams.Out, "\n%-8s%s\n", list.title+":", name)
				continue
			}
			fmt.Fprintf(streams.Out, "        %s\n", name)
		}
	}
	if text, _, _ := unstructured.NestedString(answer, "evalutionError"); text != "" {
		fmt.Fprintf(streams.Out, "\nError during evaluation, results may not be complete: %s\n", text)
	}
}
