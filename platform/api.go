package platform

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// api is the node's first part: it is ready when the API server answers and grants what the node's own
// parts ask for, so that those do not lose seconds to the back-off of clients that came too early.
type api struct {
	client *rest.Config
}

// Name is the part's name.
func (a *api) Name() string { return "api" }

// Run waits for the API server, calls ready, and then waits for ctx to end.
func (a *api) Run(ctx context.Context, ready func()) error {
	client, err := kubernetes.NewForConfig(a.client)
	if err != nil {
		return fmt.Errorf("connect API server: %w", err)
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err == nil {
			ready()
			<-ctx.Done()
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}
