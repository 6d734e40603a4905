package masters

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// listTimeout is the timeout for listing the API servers.
const listTimeout = 2 * time.Second

// APIServers returns the host:port addresses of the registered API servers.
func APIServers(ctx context.Context, client kubernetes.Interface, options metav1.GetOptions) (addresses []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	slice, err := client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get(ctx, "kubernetes", options)
	if err != nil {
		return nil, fmt.Errorf("list API servers: %w", err)
	}
	for _, port := range slice.Ports {
		if port.Name == nil || *port.Name != "https" {
			continue // skip the DNS server's port
		}
		for _, endpoint := range slice.Endpoints {
			addresses = append(addresses, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(*port.Port))))
		}
	}
	return addresses, nil
}

// CountAPIServers returns the number of registered API servers, at least 1. It reads from an API
// server's cache, so that a login does not wait for etcd.
func CountAPIServers(client kubernetes.Interface) int {
	addresses, err := APIServers(context.Background(), client, metav1.GetOptions{ResourceVersion: "0"})
	if err != nil {
		return 1
	}
	return max(len(addresses), 1)
}

// Connections returns a client configuration for each API server, derived from config.
func Connections(ctx context.Context, config *rest.Config) (servers []*rest.Config, err error) {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	addresses, err := APIServers(ctx, client, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, address := range addresses {
		server := rest.CopyConfig(config)
		server.Host = "https://" + address
		servers = append(servers, server)
	}
	return servers, nil
}
