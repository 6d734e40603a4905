package create

import (
	"errors"
	"fmt"
	"os"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewRoute returns the `oc create route` command, with a subcommand for each kind of TLS
// termination.
func NewRoute(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "route", Short: "Expose containers externally via secured routes",
		Long: "Create a route with TLS to a service. For a route without TLS, use oc expose service NAME.",
		Run:  util.DefaultSubCommandRun(streams.ErrOut),
	}
	for _, kind := range []struct {
		termination routev1.TLSTerminationType
		short, text string
	}{
		{routev1.TLSTerminationEdge, "Create a route that uses edge TLS termination", "The router terminates TLS and sends HTTP to the service."},
		{routev1.TLSTerminationPassthrough, "Create a route that uses passthrough TLS termination", "The service terminates TLS. The router forwards the connection unchanged."},
		{routev1.TLSTerminationReencrypt, "Create a route that uses reencrypt TLS termination", "The router terminates TLS and opens a TLS connection to the service."},
	} {
		command.AddCommand(Creation{
			Use: string(kind.termination) + " [NAME] --service=SERVICE", Short: kind.short, Long: kind.text,
			Example: fmt.Sprintf("  # A route for the service frontend\n  oc create route %s --service=frontend --hostname=www.example.com", kind.termination),
			Args:    cobra.MaximumNArgs(1), Resource: routev1.GroupVersion.WithResource("routes"), Kind: "Route", namespaced: true,
			flags: func(command *cobra.Command) { routeFlags(command, kind.termination) },
			Object: func(command *cobra.Command, args []string) (map[string]any, error) {
				return routeOf(command, args, kind.termination)
			},
		}.Command(factory, streams))
	}
	return command
}

func routeFlags(command *cobra.Command, termination routev1.TLSTerminationType) {
	flags := command.Flags()
	flags.String("service", "", "Service of the route.")
	flags.String("hostname", "", "Host name of the route. By default, the router generates one.")
	flags.String("port", "", "Name or number of the service's target port.")
	flags.String("insecure-policy", "", "Action for requests without TLS: None, Allow or Redirect.")
	flags.String("wildcard-policy", "", "Wildcard policy: None, or Subdomain for every host of the domain.")
	if termination == routev1.TLSTerminationPassthrough {
		return
	}
	flags.String("path", "", "Path that the route serves.")
	flags.String("cert", "", "File with the certificate, in PEM format.")
	flags.String("key", "", "File with the private key of the certificate, in PEM format.")
	flags.String("ca-cert", "", "File with the certificate authorities that issued the certificate, in PEM format.")
	if termination == routev1.TLSTerminationReencrypt {
		flags.String("dest-ca-cert", "", "File with the certificate authorities to verify the service's certificate, in PEM format.")
	}
}

// routeOf returns the route that the flags specify. The default name of the route is the service's
// name.
func routeOf(command *cobra.Command, args []string, termination routev1.TLSTerminationType) (map[string]any, error) {
	text := func(name string) string {
		value, _ := command.Flags().GetString(name) // empty if the command has no such flag
		return value
	}
	service := serviceName(text("service"))
	if service == "" {
		return nil, errors.New("you need to provide a service name via --service")
	}
	name := service
	if len(args) > 0 {
		name = args[0]
	}
	tls := map[string]any{"termination": string(termination)}
	for flag, field := range map[string]string{"cert": "certificate", "key": "key", "ca-cert": "caCertificate", "dest-ca-cert": "destinationCACertificate"} {
		if text(flag) == "" {
			continue
		}
		content, err := os.ReadFile(text(flag))
		if err != nil {
			return nil, fmt.Errorf("read --%s: %w", flag, err)
		}
		tls[field] = string(content)
	}
	if policy := text("insecure-policy"); policy != "" {
		tls["insecureEdgeTerminationPolicy"] = policy
	}
	spec := map[string]any{"to": map[string]any{"kind": "Service", "name": service}, "tls": tls}
	for flag, field := range map[string]string{"hostname": "host", "path": "path", "wildcard-policy": "wildcardPolicy"} {
		if text(flag) != "" {
			spec[field] = text(flag)
		}
	}
	if port := text("port"); port != "" {
		target := any(port)
		if parsed := intstr.Parse(port); parsed.Type == intstr.Int {
			target = int64(parsed.IntVal)
		}
		spec["port"] = map[string]any{"targetPort": target}
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "spec": spec}, nil
}

// serviceName returns the name of a service given as NAME, svc/NAME, service/NAME or services/NAME.
func serviceName(text string) string {
	for _, kind := range []string{"svc/", "service/", "services/"} {
		if name, ok := strings.CutPrefix(text, kind); ok {
			return name
		}
	}
	return text
}
