package diagnostics

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	routev1 "github.com/openshift/api/route/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects"
	"github.com/slipway-platform/slipway/cli/policy"
	"github.com/slipway-platform/slipway/cli/registry"
)

func clusterRegistry(ctx context.Context, env *environment) ([]problem, error) {
	config, err := env.factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	if _, err = registry.Find(ctx, config, metav1.NamespaceDefault); err != nil {
		return []problem{{"registry", err.Error()}}, nil
	}
	return nil, nil
}

func clusterRoles(ctx context.Context, env *environment) (problems []problem, err error) {
	names, err := policy.DifferentClusterRoles(ctx, env.kubernetes.RbacV1())
	for _, name := range names {
		problems = append(problems, problem{"role-differs", name + " does not exist, or lacks default rules"})
	}
	return problems, err
}

func clusterRoleBindings(ctx context.Context, env *environment) (problems []problem, err error) {
	names, err := policy.DifferentClusterRoleBindings(ctx, env.kubernetes.RbacV1())
	for _, name := range names {
		problems = append(problems, problem{"role-binding-differs", name + " does not exist, or lacks default subjects"})
	}
	return problems, err
}

func constraints(ctx context.Context, env *environment) (problems []problem, err error) {
	names, err := policy.DifferentConstraints(ctx, env.dynamic)
	for _, name := range names {
		problems = append(problems, problem{"constraint-differs", name + " differs from the default or does not exist"})
	}
	return problems, err
}

func (e *environment) routes(ctx context.Context) ([]routev1.Route, error) {
	return objects.List[routev1.Route](ctx, e.dynamic, routev1.GroupVersion.WithResource("routes"), "", metav1.ListOptions{})
}

func clusterRouter(ctx context.Context, env *environment) (problems []problem, err error) {
	routes, err := env.routes(ctx)
	for i := range routes {
		if !admitted(&routes[i]) {
			problems = append(problems, problem{"route-unserved", fmt.Sprintf("no router serves route %q of project %q", routes[i].Name, routes[i].Namespace)})
		}
	}
	return problems, err
}

func admitted(route *routev1.Route) bool {
	for _, ingress := range route.Status.Ingress {
		for _, condition := range ingress.Conditions {
			if condition.Type == routev1.RouteAdmitted && condition.Status == corev1.ConditionTrue {
				return true
			}
		}
	}
	return false
}

func routeCertificates(ctx context.Context, env *environment) (problems []problem, err error) {
	routes, err := env.routes(ctx)
	for _, route := range routes {
		if route.Spec.TLS == nil {
			continue
		}
		if reason := certificateProblem(route.Spec.TLS.Certificate, time.Now()); reason != "" {
			problems = append(problems, problem{"route-certificate", fmt.Sprintf("the certificate of route %q of project %q %s", route.Name, route.Namespace, reason)})
		}
	}
	return problems, err
}

// certificateProblem returns a description of the problem with a PEM-encoded certificate. It
// returns "" if the certificate is valid or text is empty.
func certificateProblem(text string, now time.Time) string {
	if text == "" {
		return ""
	}
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return "is not in PEM format"
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	switch {
	case err != nil:
		return "cannot be read: " + err.Error()
	case now.After(certificate.NotAfter):
		return "expired at " + certificate.NotAfter.UTC().Format(time.RFC3339)
	case now.Before(certificate.NotBefore):
		return "is valid only from " + certificate.NotBefore.UTC().Format(time.RFC3339)
	}
	return ""
}

func nodeDefinitions(ctx context.Context, env *environment) (problems []problem, err error) {
	nodes, err := env.kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	schedulable := false
	for _, node := range nodes.Items {
		ready := nodeReady(&node)
		schedulable = schedulable || ready && !node.Spec.Unschedulable
		if !ready {
			problems = append(problems, problem{"node-not-ready", fmt.Sprintf("node %q is not ready", node.Name)})
		}
	}
	if !schedulable {
		problems = append(problems, problem{"nodes-unusable", "no node can run new pods"})
	}
	return problems, nil
}

// nodeUsage checks that metrics.k8s.io serves the resource usage of every ready node.
func nodeUsage(ctx context.Context, env *environment) (problems []problem, err error) {
	nodes, err := env.kubernetes.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	usage, err := objects.List[metricsv1beta1.NodeMetrics](ctx, env.dynamic, metricsv1beta1.SchemeGroupVersion.WithResource("nodes"), "", metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, node := range nodes.Items {
		served := slices.ContainsFunc(usage, func(u metricsv1beta1.NodeMetrics) bool { return u.Name == node.Name })
		if nodeReady(&node) && !served {
			problems = append(problems, problem{"usage-missing", fmt.Sprintf("the metrics API has no usage of node %q", node.Name)})
		}
	}
	return problems, nil
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func configContexts(_ context.Context, env *environment) (problems []problem, err error) {
	config, err := env.factory.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return nil, err
	}
	if config.CurrentContext != "" && config.Contexts[config.CurrentContext] == nil {
		problems = append(problems, problem{"context-missing", fmt.Sprintf("the current context %q does not exist", config.CurrentContext)})
	}
	for name, context := range config.Contexts {
		if config.Clusters[context.Cluster] == nil {
			problems = append(problems, problem{"context-cluster", fmt.Sprintf("context %q refers to a cluster %q that does not exist", name, context.Cluster)})
		}
		if config.AuthInfos[context.AuthInfo] == nil {
			problems = append(problems, problem{"context-user", fmt.Sprintf("context %q refers to a user %q that does not exist", name, context.AuthInfo)})
		}
	}
	return problems, nil
}

// externalIPs checks the external IPs of services against externalIPNetworkCIDRs, in which the
// prefix ! denies a network. If --master-config is not set, externalIPs does nothing.
func externalIPs(ctx context.Context, env *environment) (problems []problem, err error) {
	if env.masterConfig == "" {
		return nil, nil // for new services, the API server checks the addresses
	}
	text, err := os.ReadFile(env.masterConfig)
	if err != nil {
		return nil, err
	}
	var config struct {
		NetworkConfig struct {
			ExternalIPNetworkCIDRs []string `json:"externalIPNetworkCIDRs"`
			IngressIPNetworkCIDR   string   `json:"ingressIPNetworkCIDR"`
		} `json:"networkConfig"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("read %q: %w", env.masterConfig, err)
	}
	services, err := env.kubernetes.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	networks := config.NetworkConfig.ExternalIPNetworkCIDRs
	for _, service := range services.Items {
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
			continue // Slipway itself assigned the service's addresses
		}
		for _, address := range service.Spec.ExternalIPs {
			if !allowed(address, networks) {
				problems = append(problems, problem{"external-address", fmt.Sprintf("service %q of project %q has the external address %s, which externalIPNetworkCIDRs does not allow", service.Name, service.Namespace, address)})
			}
		}
	}
	return problems, nil
}

// allowed reports whether one of the networks contains the address in text. It returns false if a
// network with the prefix ! also contains the address.
func allowed(text string, networks []string) bool {
	address, err := netip.ParseAddr(text)
	if err != nil {
		return false
	}
	inside := false
	for _, network := range networks {
		denied := len(network) > 0 && network[0] == '!'
		if denied {
			network = network[1:]
		}
		prefix, err := netip.ParsePrefix(network)
		if err != nil || !prefix.Contains(address) {
			continue
		}
		if denied {
			return false
		}
		inside = true
	}
	return inside
}
