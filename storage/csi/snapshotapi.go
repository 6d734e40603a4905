package csi

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// AwaitSnapshots waits until the API server serves the snapshot API or ctx is done.
func AwaitSnapshots(ctx context.Context, config *rest.Config) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	return wait.PollUntilContextCancel(ctx, time.Second, true, func(context.Context) (bool, error) {
		_, err := client.ServerResourcesForGroupVersion("snapshot.storage.k8s.io/v1")
		return err == nil, nil
	})
}
