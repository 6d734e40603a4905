package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/objects"
)

// newWhoCan returns the `who-can` command, which lists the users and groups that are allowed to
// perform an action.
func newWhoCan(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	w := &whoCan{factory: factory, IOStreams: streams}
	command := &cobra.Command{
		Use:   "who-can VERB RESOURCE [NAME]",
		Short: "List who can perform the specified action on a resource",
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(w.validate(args))
			util.CheckErr(w.complete(args))
			util.CheckErr(w.run(command.Context()))
		},
	}
	command.Flags().BoolVar(&w.everywhere, "all-namespaces", false, "Check in all projects.")
	w.output = objects.AddOutput(command)
	return command
}

// whoCan holds the state of `who-can`.
type whoCan struct {
	factory util.Factory
	genericiooptions.IOStreams
	everywhere bool
	output     *objects.Output

	namespace string // empty for all projects
	resource  schema.GroupResource
	action    map[string]any // the review's content, without its kind
	verb      string
}

func (w *whoCan) validate(args []string) error {
	if len(args) < 2 || len(args) > 3 {
		return errors.New("you must specify two or three arguments: verb, resource, and optional resourceName")
	}
	return nil
}

func (w *whoCan) complete(args []string) (err error) {
	if w.namespace, _, err = w.factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	if w.everywhere {
		w.namespace = ""
	}
	mapper, err := w.factory.ToRESTMapper()
	if err != nil {
		return err
	}
	w.verb, w.resource = args[0], resourceOf(mapper, args[1])
	w.action = map[string]any{
		"apiVersion": authorizationv1.GroupVersion.String(), "namespace": w.namespace,
		"verb": w.verb, "resourceAPIGroup": w.resource.Group, "resource": w.resource.Resource,
	}
	if len(args) == 3 {
		w.action["resourceName"] = args[2]
	}
	return nil
}

func (w *whoCan) run(ctx context.Context) error {
	kind, plural := "LocalResourceAccessReview", "localresourceaccessreviews"
	if w.everywhere {
		kind, plural = "ResourceAccessReview", "resourceaccessreviews"
	}
	w.action["kind"] = kind
	client, err := w.factory.DynamicClient()
	if err != nil {
		return err
	}
	response, err := client.Resource(authorizationv1.GroupVersion.WithResource(plural)).Namespace(w.namespace).
		Create(ctx, &unstructured.Unstructured{Object: w.action}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if w.output.Set() {
		return w.output.Print(w.IOStreams, response)
	}
	printWhoCan(w.IOStreams, response.Object, w.namespace, w.verb, w.resource)
	return nil
}

// resourceOf returns the resource that a user identifies by its plural, singular or short name. The
// name can include a subresource, or a version and a group (hpa.v1.autoscaling). It returns an
// unknown name unchanged, because a role can refer to a resource that the server does not have.
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

func printWhoCan(streams genericiooptions.IOStreams, resp map[string]any, namespace, verb string, resource schema.GroupResource) {
	if namespace == "" {
		namespace = "<all>"
	}
	fmt.Fprintf(streams.Out, "Namespace: %s\nVerb:      %s\nResource:  %s\n", namespace, verb, resource)
	for _, list := range []struct{ title, key string }{{"Users", "users"}, {"Groups", "groups"}} {
		names, _, _ := unstructured.NestedStringSlice(resp, list.key)
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
	if text, _, _ := unstructured.NestedString(resp, "evalutionError"); text != "" {
		fmt.Fprintf(streams.Out, "\nError during evaluation, results may not be complete: %s\n", text)
	}
}
