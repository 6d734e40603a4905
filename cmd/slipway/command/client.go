package command

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/platform"
	"github.com/slipway-platform/slipway/supervisor"
)

// errNotRunning reports that no supervisor runs for a data directory.
var errNotRunning = errors.New("slipway is not running; start it with: slipway up")

// errNotRoot reports that the user has no access to the platform of the host.
var errNotRoot = errors.New("only root has access to the platform of this host; run the command with sudo")

// supervisorStatus returns the status of the host; errNotRunning if it does not run.
func supervisorStatus(ctx context.Context, h *platform.Host) (supervisor.Status, error) {
	status, err := supervisor.NewClient(h.Socket()).Status(ctx)
	if errors.Is(err, fs.ErrPermission) {
		return status, errNotRoot
	}
	if errors.Is(err, supervisor.ErrNotRunning) {
		return status, errNotRunning
	}
	return status, err
}

// clusterConfig returns the connection to a cluster: with a kubeconfig, or with the service account
// of the pod if file is "".
func clusterConfig(file string) (*rest.Config, error) {
	if file == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("connect to the cluster: %w; outside a pod, use --kubeconfig", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", file)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig %q: %w", file, err)
	}
	return config, nil
}
