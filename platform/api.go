package platform

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// api is the node's first part: it is ready when the API server answers and grants what the node's
// own parts ask for, so that those do not lose seconds to the back-off of clients that came too
// early.
type api struct {
	grants []grant
}

// grant is a right that a part of the node must have before it starts: to list what is at a path.
type grant struct {
	client *rest.Config
	path   string
}

// Name is the part's name.
func (a *api) Name() string { return "api" }

// Run waits for the API server, calls ready, and then waits for ctx to end.
func (a *api) Run(ctx context.Context, ready func()) error {
	for _, grant := range a.grants {
		client, err := kubernetes.NewForConfig(grant.client)
		if err != nil {
			return fmt.Errorf("connect API server: %w", err)
		}
		err = wait.PollUntilContextCancel(ctx, 50*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			return client.Discovery().RESTClient().Get().AbsPath(grant.path).Param("limit", "1").Do(ctx).Error() == nil, nil
		})
		if err != nil {
			return nil // ctx has ended
		}
	}
	ready()
	<-ctx.Done()
	return nil
}
