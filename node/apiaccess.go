package node

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// APIAccess becomes ready when the API server serves the objects that the node's components list
// and permits the components to list them. Clients that start earlier would fail and wait for their
// backoff.
type APIAccess struct {
	Grants []Grant
}

// Grant is a client's permission to list the objects at a path, such as /api/v1/nodes.
type Grant struct {
	Client *rest.Config
	Path   string
}

// accessPollInterval is the interval between attempts to list the objects at a path.
const accessPollInterval = 50 * time.Millisecond

// Name returns the component's name.
func (a *APIAccess) Name() string { return "api" }

// Run waits until all grants take effect, calls ready, and waits until ctx is done.
func (a *APIAccess) Run(ctx context.Context, ready func()) error {
	for _, grant := range a.Grants {
		client, err := kubernetes.NewForConfig(grant.Client)
		if err != nil {
			return fmt.Errorf("create client for %q: %w", grant.Path, err)
		}
		err = wait.PollUntilContextCancel(ctx, accessPollInterval, true, func(ctx context.Context) (bool, error) {
			request := client.Discovery().RESTClient().Get().AbsPath(grant.Path).Param("limit", "1")
			return request.Do(ctx).Error() == nil, nil
		})
		if err != nil {
			return nil // ctx is done
		}
	}
	ready()
	<-ctx.Done()
	return nil
}
