package command

import (
	"fmt"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/platform/host"
)

// connectAdmin returns the administrator's connection to the cluster of this host, and a client for
// it. If the cluster has never been started, the error contains the command that starts it.
func connectAdmin(h *host.Host) (*rest.Config, kubernetes.Interface, error) {
	config, err := h.AdminClient()
	if err != nil {
		return nil, nil, fmt.Errorf("%w; start the cluster with: slipway up", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return config, client, nil
}
