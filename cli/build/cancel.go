package build

import (
	"context"
	"fmt"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// cancelTimeout is the maximum time that Cancel waits for the build to finish.
const cancelTimeout = time.Minute

// Cancel cancels a build and waits until it finishes. It reports whether the build was still active
// when Cancel was called.
func (c *Client) Cancel(ctx context.Context, name string) (cancelled bool, err error) {
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		build, err := c.Builds(c.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if cancelled = !instantiate.Ended(build); !cancelled || build.Status.Cancelled {
			return nil
		}
		build.Status.Cancelled = true
		_, err = c.Builds(c.Namespace).Update(ctx, build, metav1.UpdateOptions{})
		return err
	})
	if err != nil || !cancelled {
		return cancelled, err
	}
	ctx, stop := context.WithTimeout(ctx, cancelTimeout)
	defer stop()
	build, err := c.Wait(ctx, name, instantiate.Ended)
	if err == nil && build.Status.Phase != buildv1.BuildPhaseCancelled {
		err = fmt.Errorf("cancel build %q: it has already ended in the phase %s", name, build.Status.Phase)
	}
	return true, err
}

// Again starts a new build with the same spec as the build named request.Name.
func (c *Client) Again(ctx context.Context, request *buildv1.BuildRequest) (*buildv1.Build, error) {
	return c.Builds(c.Namespace).Clone(ctx, request.Name, request, metav1.CreateOptions{})
}
