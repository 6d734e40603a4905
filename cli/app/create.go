package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	routev1 "github.com/openshift/api/route/v1"
	templatev1 "github.com/openshift/api/template/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/app/newapp"
	"github.com/slipway-platform/slipway/cli/manifest"
	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/cli/template"
)

// fill processes the templates in a plan. It returns the templates' objects and the objects for the
// plan's other components.
func (o *newApp) fill(ctx context.Context, finder *newapp.Finder, plan *newapp.Plan) ([]*unstructured.Unstructured, error) {
	out := o.messages()
	plan.Describe(out)
	values, err := template.Values("parameter", o.params, o.paramFiles, o.In, o.ErrOut)
	if err != nil {
		return nil, err
	}
	var all []*unstructured.Unstructured
	for _, tmpl := range plan.Templates {
		generated := map[string]bool{}
		if err := template.Fill(tmpl, values, o.ignoreUnknown || len(plan.Templates) > 1); err != nil {
			err = errors.New(strings.ReplaceAll(err.Error(), "unknown parameter name", "unexpected parameter name"))
			return nil, err
		}
		for _, parameter := range tmpl.Parameters {
			generated[parameter.Name] = parameter.Generate != "" && parameter.Value == ""
		}
		if len(o.request.Labels) > 0 && tmpl.ObjectLabels == nil {
			tmpl.ObjectLabels = map[string]string{}
		}
		for key, value := range o.request.Labels {
			tmpl.ObjectLabels[key] = value
		}
		if err := o.label(tmpl); err != nil {
			return nil, err
		}
		project := tmpl.Namespace
		result, err := template.Process(ctx, finder.Templates, finder.Namespace, tmpl)
		if err != nil {
			return nil, err
		}
		describeTemplate(out, project, finder.Namespace, result, generated)
		objects, err := template.Objects(result)
		if err != nil {
			return nil, err
		}
		for _, object := range objects {
			current, err := converted(object)
			if err != nil {
				return nil, err
			}
			for _, item := range current {
				if err := o.configure(item); err != nil {
					return nil, fmt.Errorf("change %s %q: %w", item.GetKind(), item.GetName(), err)
				}
			}
			all = append(all, current...)
		}
	}
	for _, object := range plan.Objects() {
		object, err := objects.Plain(object)
		if err != nil {
			return nil, err
		}
		all = append(all, object)
	}
	return all, checkArguments(o.request.Options, all)
}

// messages returns the writer for user messages. It discards them if -o is set.
func (o *newApp) messages() io.Writer {
	if *o.print.OutputFormat != "" {
		return io.Discard
	}
	return o.Out
}

// converted returns an object, or the items of a list, converted to their current API versions.
func converted(object *unstructured.Unstructured) (all []*unstructured.Unstructured, err error) {
	text, err := object.MarshalJSON()
	if err != nil {
		return nil, fmt.Errorf("read object %q: %w", object.GetName(), err)
	}
	text, _ = manifest.Convert(text)
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		current := &unstructured.Unstructured{}
		if err := yaml.Unmarshal(document, &current.Object); err != nil {
			return nil, fmt.Errorf("read object %q: %w", object.GetName(), err)
		}
		all = append(all, current)
	}
	return all, nil
}

func describeTemplate(out io.Writer, project, namespace string, template *templatev1.Template, generated map[string]bool) {
	name := template.Name
	if project != "" && project != namespace {
		name = project + "/" + name
	}
	fmt.Fprintf(out, "--> Deploying template %q to project %s\n\n", name, namespace)
	title := template.Annotations["openshift.io/display-name"]
	if title == "" {
		title = template.Name
	}
	fmt.Fprintf(out, "     %s\n     %s\n", title, strings.Repeat("-", len(title)))
	for _, text := range []string{template.Annotations["description"], template.Message} {
		if text != "" {
			fmt.Fprintf(out, "     %s\n\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n     "))
		}
	}
	if len(template.Parameters) > 0 {
		fmt.Fprintln(out, "     * With parameters:")
	}
	for _, parameter := range template.Parameters {
		title, note := parameter.DisplayName, ""
		if title == "" {
			title = parameter.Name
		}
		if generated[parameter.Name] {
			note = " # generated"
		}
		fmt.Fprintf(out, "        * %s=%s%s\n", title, parameter.Value, note)
	}
	fmt.Fprintln(out)
}

// create creates the objects and prints messages, or, with `-o name`, only the objects' names. With
// any other -o format, it only prints the objects.
func (o *newApp) create(ctx context.Context, plan *newapp.Plan, all []*unstructured.Unstructured) error {
	format := *o.print.OutputFormat
	if objects.ReplacesCreation(format) {
		return objects.PrintList(o.print, all, o.Out)
	}
	names, err := objects.NamePrinter(o.print)
	if err != nil {
		return err
	}
	out, indent, dry := o.messages(), "    ", ""
	if format != "" {
		indent = ""
	}
	if o.dryRun {
		dry = " (dry run)"
	}
	fmt.Fprintf(out, "--> Creating resources%s ...\n", dry)
	problems := 0
	for _, object := range all {
		lines, err := o.createObject(ctx, plan.Namespace, object)
		for _, line := range lines {
			fmt.Fprintf(out, "    %s%s\n", line, dry)
		}
		if err == nil {
			err = names.PrintObj(object, o.Out)
		}
		if err != nil {
			problems++
			fmt.Fprintf(o.ErrOut, "%serror: %v\n", indent, err)
		}
	}
	if problems > 0 {
		fmt.Fprintln(out, "--> Failed")
		return errors.New("not all objects were created")
	}
	fmt.Fprintf(out, "--> Success%s\n", dry)
	if format == "" {
		o.printNextSteps(out, plan.Namespace, all)
	}
	return nil
}

// createObject creates an object. It returns lines that describe the result. If an image stream
// already exists, createObject keeps it and adds any missing tags, because several applications can
// share an image stream.
func (o *newApp) createObject(ctx context.Context, namespace string, object *unstructured.Unstructured) (lines []string, err error) {
	name, err := objects.CreateObject(ctx, o.factory, namespace, object, o.dryRun)
	if !apierrors.IsAlreadyExists(err) || object.GroupVersionKind().GroupKind() != imagev1.GroupVersion.WithKind("ImageStream").GroupKind() {
		if err != nil {
			return nil, err
		}
		return []string{name + " created"}, nil
	}
	stream := &imagev1.ImageStream{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, stream); err != nil {
		return nil, fmt.Errorf("read image stream %q: %w", object.GetName(), err)
	}
	lines = []string{name + " already exists"}
	for _, tag := range newapp.Tags(stream) {
		plain, err := objects.Plain(tag)
		if err != nil {
			return lines, err
		}
		name, err := objects.CreateObject(ctx, o.factory, namespace, plain, o.dryRun)
		if apierrors.IsAlreadyExists(err) {
			continue
		}
		if err != nil {
			return lines, err
		}
		lines = append(lines, name+" created")
	}
	return lines, nil
}

// printRoute prints the URL of an application. It reads the host from the created route, because
// the server can choose the host. If it cannot read the route, it prints nothing.
func (o *newApp) printRoute(out io.Writer, namespace string, object *unstructured.Unstructured) {
	if own := object.GetNamespace(); own != "" {
		namespace = own
	}
	client, mapping, err := objects.ResourceOf(o.factory, object)
	if err != nil || o.dryRun {
		return
	}
	created, err := client.Resource(mapping.Resource).Namespace(namespace).Get(context.Background(), object.GetName(), metav1.GetOptions{})
	route := &routev1.Route{}
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(created.Object, route) != nil || route.Spec.Host == "" {
		return
	}
	fmt.Fprintf(out, "    Access your application via route '%s': %s\n", route.Spec.Host, objects.RouteURL(route))
}

// printNextSteps prints how to follow or start builds, the URLs of routes, and how to expose
// services.
func (o *newApp) printNextSteps(out io.Writer, namespace string, all []*unstructured.Unstructured) {
	exposed := map[string]bool{}
	var services []string
	for _, object := range all {
		switch object.GetKind() {
		case "BuildConfig":
			config := &buildv1.BuildConfig{}
			if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, config) == nil && len(config.Spec.Triggers) > 0 {
				fmt.Fprintf(out, "    Build scheduled, use 'oc logs -f bc/%s' to track its progress.\n", object.GetName())
			} else {
				fmt.Fprintf(out, "    Use 'oc start-build %s' to start a build.\n", object.GetName())
			}
		case "Route":
			// If the service name cannot be read, it is empty and does not match any service.
			name, _, _ := unstructured.NestedString(object.Object, "spec", "to", "name")
			exposed[name] = true
			o.printRoute(out, namespace, object)
		case "Service":
			services = append(services, object.GetName())
		}
	}
	var open []string
	for _, service := range services {
		if !exposed[service] {
			open = append(open, fmt.Sprintf("     'oc expose svc/%s' \n", service))
		}
	}
	if len(open) > 0 {
		fmt.Fprintf(out, "    Application is not exposed. You can expose services to the outside world by executing one or more of the commands below:\n%s", strings.Join(open, ""))
	}
	if !o.request.BuildOnly {
		fmt.Fprintln(out, "    Run 'oc status' to view your app.")
	}
}
