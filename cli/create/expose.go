package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlexpose "k8s.io/kubectl/pkg/cmd/expose"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// routeGenerator is the --generator value that creates routes. Other values create services.
const routeGenerator = "route/v1"

// NewExpose returns the `oc expose` command, which creates a route for a service. For other
// objects, it creates a service, as kubectl does.
func NewExpose(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := kubectlexpose.NewCmdExposeService(factory, streams)
	command.Use = "expose (-f FILENAME | TYPE NAME) [--port=port] [--name=name] [--hostname=host] [--path=path]"
	command.Short = "Expose a replicated application as a service or route"
	command.Long = `Create a route for a service, or a service for anything that has pods.

A route gets the labels of its service and uses its first port unless --port is set. To create a second service for
a service: --generator=service/v1.`
	command.Example = `  # Create a route for the service web, and one with its own host name
  oc expose service web
  oc expose service web --name=shop --hostname=www.example.com --path=/shop

  # Create a service for the pods of a deployment config
  oc expose dc/web --port=8080`
	flags := command.Flags()
	flags.String("generator", "", "What to create: route/v1, service/v1 or service/v2. The default for a service is a route, and for anything else a service.")
	flags.String("hostname", "", "Host name of the route. By default, the router generates one.")
	flags.String("path", "", "Path that the route serves.")
	flags.String("wildcard-policy", "", "Wildcard policy: None, or Subdomain for every host of the domain.")
	service := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		services, err := exposed(factory, command, args)
		util.CheckErr(err)
		if services == nil {
			service(command, args)
			return
		}
		for _, service := range services {
			util.CheckErr(exposeService(command.Context(), factory, streams, command, service))
		}
	}
	return command
}

// exposed returns the services for which the command creates routes, or nil if the command creates
// services instead.
func exposed(factory util.Factory, command *cobra.Command, args []string) ([]*corev1.Service, error) {
	generator := util.GetFlagString(command, "generator")
	if generator != "" && generator != routeGenerator {
		if !slices.Contains([]string{"service/v1", "service/v2"}, generator) {
			return nil, fmt.Errorf("--generator is %q, must be %s, service/v1 or service/v2", generator, routeGenerator)
		}
		return nil, nil
	}
	files := resource.FilenameOptions{Recursive: util.GetFlagBool(command, "recursive"), Kustomize: util.GetFlagString(command, "kustomize")}
	files.Filenames = util.GetFlagStringSlice(command, "filename")
	namespace, enforced, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	infos, err := factory.NewBuilder().Unstructured().ContinueOnError().NamespaceParam(namespace).DefaultNamespace().
		FilenameParam(enforced, &files).ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
	if err != nil {
		return nil, err
	}
	var services []*corev1.Service
	for _, info := range infos {
		if kind := info.Mapping.GroupVersionKind; kind.Group != "" || kind.Kind != "Service" {
			if generator == routeGenerator || services != nil {
				return nil, fmt.Errorf("%s is not a service; a route needs a service", info.ObjectName())
			}
			return nil, nil
		}
		service := &corev1.Service{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(info.Object.(*unstructured.Unstructured).Object, service); err != nil {
			return nil, fmt.Errorf("read service %q: %w", info.Name, err)
		}
		services = append(services, service)
	}
	return services, nil
}

// exposeService creates a route for a service.
func exposeService(ctx context.Context, factory util.Factory, streams genericiooptions.IOStreams, command *cobra.Command, service *corev1.Service) error {
	route, err := routeTo(service, func(flag string) string { return util.GetFlagString(command, flag) })
	if err != nil {
		return err
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(route)
	if err != nil {
		return err
	}
	delete(content, "status")
	print := genericclioptions.NewPrintFlags("exposed").WithTypeSetter(scheme.Scheme)
	*print.OutputFormat = util.GetFlagString(command, "output")
	return Creation{
		Resource: routev1.GroupVersion.WithResource("routes"), Kind: "Route", namespaced: true,
		Object: func(*cobra.Command, []string) (map[string]any, error) { return content, nil },
	}.run(ctx, factory, print, streams, command, nil)
}

// routeTo returns a route to the service. The flags specify the route's other properties. The
// default port is the service's first TCP port.
func routeTo(service *corev1.Service, flag func(string) string) (*routev1.Route, error) {
	route := &routev1.Route{ObjectMeta: metav1.ObjectMeta{Name: service.Name, Labels: service.Labels}}
	if name := flag("name"); name != "" {
		route.Name = name
	}
	if text := flag("labels"); text != "" {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return nil, fmt.Errorf("parse --labels: %w", err)
		}
		route.Labels = set
	}
	for _, name := range []string{"protocol", "target-port", "type", "external-ip", "load-balancer-ip", "cluster-ip", "session-affinity", "selector"} {
		if flag(name) != "" && !(name == "protocol" && strings.EqualFold(flag(name), "TCP")) {
			return nil, fmt.Errorf("--%s is only for services, but the command creates a route for service %q; to create a service, add --generator=service/v1", name, service.Name)
		}
	}
	route.Spec = routev1.RouteSpec{
		Host: flag("hostname"), Path: flag("path"), WildcardPolicy: routev1.WildcardPolicyType(flag("wildcard-policy")),
		To: routev1.RouteTargetReference{Kind: "Service", Name: service.Name},
	}
	if port := flag("port"); port != "" {
		route.Spec.Port = &routev1.RoutePort{TargetPort: intstr.Parse(port)}
		return route, nil
	}
	for _, port := range service.Spec.Ports {
		switch {
		case port.Protocol != "" && port.Protocol != corev1.ProtocolTCP:
			continue
		case port.Name != "":
			route.Spec.Port = &routev1.RoutePort{TargetPort: intstr.FromString(port.Name)}
		case port.TargetPort.Type == intstr.Int && port.TargetPort.IntVal != 0:
			route.Spec.Port = &routev1.RoutePort{TargetPort: port.TargetPort}
		}
		return route, nil
	}
	if len(service.Spec.Ports) > 0 {
		return nil, fmt.Errorf("service %q has no TCP port, which a route needs", service.Name)
	}
	return nil, errors.New("service " + service.Name + " has no port: set --port")
}
