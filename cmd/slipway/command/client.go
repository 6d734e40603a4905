package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
	"github.com/slipway-platform/slipway/supervisor"
)

// errNotRunning is returned if no supervisor is running for the data directory.
var errNotRunning = errors.New("slipway is not running; start it with: slipway up")

// errNotRoot is returned if the user is not allowed to connect to this host's supervisor.
var errNotRoot = errors.New("only root has access to the platform of this host; run the command with sudo")

// supervisorStatus returns the host's status, or errNotRunning or errNotRoot.
func supervisorStatus(ctx context.Context, h *host.Host) (supervisor.Status, error) {
	status, err := supervisor.NewClient(h.Socket()).Status(ctx)
	if errors.Is(err, fs.ErrPermission) {
		return status, errNotRoot
	}
	if errors.Is(err, supervisor.ErrNotRunning) {
		return status, errNotRunning
	}
	return status, err
}

// clusterConfig returns the client configuration for a cluster. It reads a kubeconfig or, if file
// is empty, uses the pod's service account.
func clusterConfig(file string) (*rest.Config, error) {
	if file == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("connect to the cluster: %w; outside a pod, use --kubeconfig", err)
		}
		return config, nil
	}
	return pki.ReadKubeconfig(file)
}
