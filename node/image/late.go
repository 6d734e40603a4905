package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	client "github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
)

// lateTimeout is the maximum time to wait for an image that the node loads after it has started.
// Loading all of these images takes seconds.
const lateTimeout = 2 * time.Minute

// isLoadedLate reports whether Loader loads the image only after the node has started. Until then,
// the image can be missing. The router and ipfailover images are not included, because they do not
// exist on hosts without their programs.
func isLoadedLate(name string) bool {
	return slices.Contains([]string{SelfName, DeployerName, BuilderName}, name)
}

// awaitImage waits until the store contains an image. If waiting is not nil, awaitImage calls it
// before it waits.
func awaitImage(ctx context.Context, c *client.Client, name string, waiting func(name string)) (record images.Image, err error) {
	if waiting != nil {
		waiting(name)
	}
	limited, cancel := context.WithTimeout(ctx, lateTimeout)
	defer cancel()
	ended := poll(limited, func() bool {
		record, err = c.ImageService().Get(limited, name)
		return !errdefs.IsNotFound(err)
	})
	if ended != nil && ctx.Err() == nil {
		err = fmt.Errorf("the node did not load it within %s; see `slipway logs node`", lateTimeout)
	}
	return record, err
}
