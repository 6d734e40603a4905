// Package scrape lists the endpoints that serve the cluster's metrics for Prometheus, in
// Prometheus' HTTP service discovery format: a list of target groups. With this list, Prometheus
// needs no permission to list nodes and services, and finds new hosts.
package scrape

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/node/hostreport"
)

// Path is the path at which the targets of the cluster's own components are listed. ServicesPath is
// the path for the annotated services in all projects. The lists are separate because only the
// cluster's own components may receive Prometheus' token.
const (
	Path         = "/slipway/metrics/cluster"
	ServicesPath = "/slipway/metrics/services"
)

// The annotations of services that have metrics. The first annotation must be "true". The other
// annotations are optional.
const (
	scrapeAnnotation = "prometheus.io/scrape"
	schemeAnnotation = "prometheus.io/scheme"
	pathAnnotation   = "prometheus.io/path"
	portAnnotation   = "prometheus.io/port"
)

// routerPort is the metrics port of a host's router, unless the host sets a different port.
const routerPort = 1936

// listTimeout is the timeout for a response.
const listTimeout = 30 * time.Second

// Group is a group of targets with the same labels.
type Group struct {
	Targets []string          `json:"targets"`
	Labels  map[string]string `json:"labels"`
}

// Feature serves the groups at both paths. A user can read the groups if the user's roles allow
// access to these paths.
func Feature() apiserver.Feature {
	return apiserver.Feature{Hooks: func(deps apiserver.Deps) (apiserver.Hooks, error) {
		view := func(path string, list func(context.Context, kubernetes.Interface) ([]Group, error)) apiserver.Handler {
			return apiserver.View(path, listTimeout, http.StatusServiceUnavailable, func(ctx context.Context, _ *http.Request) (any, error) {
				return list(ctx, deps.Kube)
			})
		}
		return apiserver.Hooks{Handlers: []apiserver.Handler{view(Path, cluster), view(ServicesPath, services)}}, nil
	}}
}

// fromCache returns options for listing objects from the watch cache. If service is not empty, only
// this service's endpoints are listed.
func fromCache(service string) metav1.ListOptions {
	options := metav1.ListOptions{ResourceVersion: "0"}
	if service != "" {
		options.LabelSelector = discoveryv1.LabelServiceName + "=" + service
	}
	return options
}

// cluster returns targets for the masters, the nodes, the nodes' containers, and the hosts'
// routers. A master is one process: its metrics include the metrics of the API server, the
// controllers, the scheduler and other components.
func cluster(ctx context.Context, client kubernetes.Interface) ([]Group, error) {
	masters, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).List(ctx, fromCache("kubernetes"))
	if err != nil {
		return nil, fmt.Errorf("list masters: %w", err)
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, fromCache(""))
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	groups := []Group{}
	for i := range masters.Items {
		for _, port := range masters.Items[i].Ports {
			if port.Name != nil && *port.Name == "https" && port.Port != nil {
				groups = append(groups, Group{addresses(&masters.Items[i], *port.Port), labels("masters", "https", "/metrics")})
			}
		}
	}
	for i := range nodes.Items {
		groups = append(groups, ofNode(&nodes.Items[i])...)
	}
	return groups, nil
}

// ofNode returns the target groups of a node.
func ofNode(node *corev1.Node) (groups []Group) {
	host := addressOf(node)
	if host == "" {
		return nil
	}
	add := func(job, scheme, path string, port int32) {
		l := labels(job, scheme, path)
		l["node"] = node.Name
		groups = append(groups, Group{[]string{join(host, port)}, l})
	}
	kubelet := cmp.Or(node.Status.DaemonEndpoints.KubeletEndpoint.Port, 10250)
	add("nodes", "https", "/metrics", kubelet)
	add("containers", "https", "/metrics/cadvisor", kubelet)
	if hasRouter(node) {
		add("routers", "http", "/metrics", routerPort)
	}
	return groups
}

func addressOf(node *corev1.Node) string {
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return address.Address
		}
	}
	return ""
}

// hasRouter reports whether a host's report contains a router.
func hasRouter(node *corev1.Node) bool {
	var report hostreport.Report
	if json.Unmarshal([]byte(node.Annotations[hostreport.Annotation]), &report) != nil {
		return false // the host has not reported yet
	}
	return slices.ContainsFunc(report.Components, func(c hostreport.Component) bool { return c.Name == "router" })
}

// services returns the endpoints of annotated services.
func services(ctx context.Context, client kubernetes.Interface) ([]Group, error) {
	all, err := client.CoreV1().Services("").List(ctx, fromCache(""))
	if err != nil {
		return nil, fmt.Errorf("list services: %w", err)
	}
	groups := []Group{}
	for i := range all.Items {
		service := &all.Items[i]
		if service.Annotations[scrapeAnnotation] != "true" {
			continue
		}
		slices, err := client.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, fromCache(service.Name))
		if err != nil {
			return nil, fmt.Errorf("list endpoints of service %s/%s: %w", service.Namespace, service.Name, err)
		}
		for j := range slices.Items {
			groups = append(groups, ofService(service, &slices.Items[j])...)
		}
	}
	return groups, nil
}

// ofService returns an annotated service's targets in one of its endpoint slices.
func ofService(service *corev1.Service, slice *discoveryv1.EndpointSlice) (groups []Group) {
	scheme := "http"
	if service.Annotations[schemeAnnotation] == "https" {
		scheme = "https"
	}
	path := cmp.Or(service.Annotations[pathAnnotation], "/metrics")
	if !strings.HasPrefix(path, "/") {
		path = "/" + path
	}
	portNumber, _ := strconv.ParseInt(service.Annotations[portAnnotation], 10, 32) // 0 means all ports
	for _, port := range slice.Ports {
		if port.Port == nil || portNumber != 0 && int64(*port.Port) != portNumber {
			continue
		}
		for i := range slice.Endpoints {
			endpoint := &slice.Endpoints[i]
			l := labels("services", scheme, path)
			l["namespace"], l["service"] = service.Namespace, service.Name
			if endpoint.TargetRef != nil && endpoint.TargetRef.Kind == "Pod" {
				l["pod"] = endpoint.TargetRef.Name
			}
			groups = append(groups, Group{targets(endpoint, *port.Port), l})
		}
	}
	return groups
}

func addresses(slice *discoveryv1.EndpointSlice, port int32) (all []string) {
	for i := range slice.Endpoints {
		all = append(all, targets(&slice.Endpoints[i], port)...)
	}
	return all
}

func targets(endpoint *discoveryv1.Endpoint, port int32) (all []string) {
	for _, address := range endpoint.Addresses {
		all = append(all, join(address, port))
	}
	return all
}

func join(host string, port int32) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// labels returns the labels that determine how Prometheus scrapes a target.
func labels(job, scheme, path string) map[string]string {
	return map[string]string{"job": job, "__scheme__": scheme, "__metrics_path__": path}
}
