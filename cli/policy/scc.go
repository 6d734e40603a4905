package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	securityv1 "github.com/openshift/api/security/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newSCC returns the commands that allow or forbid security context constraints for users or
// groups.
func newSCC(factory util.Factory, streams genericiooptions.IOStreams, name, subject string, add bool) *cobra.Command {
	var accounts []string
	var output *objects.Output
	short := "Remove " + subject + "s from security context constraints"
	if add {
		short = "Add " + subject + "s to security context constraints"
	}
	command := &cobra.Command{
		Use:   name + " CONSTRAINTS " + map[string]string{"user": "(USER | -z SERVICEACCOUNT)...", "group": "GROUP..."}[subject],
		Short: short,
		Run: func(command *cobra.Command, args []string) {
			switch {
			case subject == "group" && len(args) < 2:
				util.CheckErr(errors.New("you must specify at least two arguments: <scc> <group> [group]..."))
			case len(args) == 0:
				util.CheckErr(errors.New("you must specify a scc"))
			case len(args) == 1 && len(accounts) == 0:
				util.CheckErr(errors.New("you must specify at least one user or service account"))
			}
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			users, err := accountNames(namespace, accounts)
			util.CheckErr(err)
			names := slices.Concat(args[1:], users)
			changed, err := changeSCC(command.Context(), factory, args[0], subject+"s", names, add, !output.Set() && !output.DryRun)
			util.CheckErr(err)
			if output.Set() {
				util.CheckErr(output.Print(streams, changed))
				return
			}
			preposition := "removed from"
			if add {
				preposition = "added to"
			}
			if subject == "group" {
				preposition += " groups"
			}
			fmt.Fprintf(streams.Out, "scc %q %s: %q%s\n", args[0], preposition, names, output.Suffix())
		},
	}
	if subject == "user" {
		command.Flags().StringSliceVarP(&accounts, "serviceaccount", "z", nil, "Service account of the current project, instead of a user.")
	}
	output = objects.AddOutput(command)
	return command
}

// changeSCC changes the users or the groups of constraints.
func changeSCC(ctx context.Context, factory util.Factory, name, list string, subjects []string, add, write bool) (*unstructured.Unstructured, error) {
	client, err := factory.DynamicClient()
	if err != nil {
		return nil, err
	}
	resource := client.Resource(securityv1.GroupVersion.WithResource("securitycontextconstraints"))
	object, err := resource.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	present, _, err := unstructured.NestedStringSlice(object.Object, list)
	if err != nil {
		return nil, err
	}
	changed := slices.DeleteFunc(slices.Clone(present), func(name string) bool { return slices.Contains(subjects, name) })
	if add {
		changed = append(changed, subjects...)
	}
	if err := unstructured.SetNestedStringSlice(object.Object, changed, list); err != nil {
		return nil, err
	}
	if !write {
		return object, nil
	}
	return resource.Update(ctx, object, metav1.UpdateOptions{})
}

// newWhoCan returns `who-can`, which lists who can do something to a resource.
func newWhoCan(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	everywhere := false
	var output *objects.Output
	command := &cobra.Command{
		Use:   "who-can VERB RESOURCE [NAME]",
		Short: "List who can perform the specified action on a resource",
		Run: func(command *cobra.Command, args []string) {
			if len(args) < 2 || len(args) > 3 {
				util.CheckErr(errors.New("you must specify two or three arguments: verb, resource, and optional resourceName"))
			}
			namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
			util.CheckErr(err)
			mapper, err := factory.ToRESTMapper()
			util.CheckErr(err)
			resource := resourceOf(mapper, args[1])
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
			if output.Set() {
				util.CheckErr(output.Print(streams, answer))
				return
			}
			printWhoCan(streams, answer.Object, namespace, args[0], resource)
		},
	}
	command.Flags().BoolVar(&everywhere, "all-namespaces", false, "Check in all projects.")
	output = objects.AddOutput(command)
	return command
}

// resourceOf returns the resource that a user names: by its plural, singular or short name, with or
// without a subresource, a version and a group (hpa.v1.autoscaling). Rights can also be about a
// resource that the server doesn't have, so an unknown name is returned as it is.
func resourceOf(mapper meta.RESTMapper, text string) schema.GroupResource {
	name, subresource, _ := strings.Cut(text, "/")
	versioned, grouped := schema.ParseResourceArg(name)
	resource := grouped
	if full, err := mapper.ResourceFor(grouped.WithVersion("")); err == nil {
		resource = full.GroupResource()
	}
	if versioned != nil {
		if full, err := mapper.ResourceFor(*versioned); err == nil {
			resource = full.GroupResource()
		}
	}
	if subresource != "" {
		resource.Resource += "/" + subresource
	}
	return resource
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
