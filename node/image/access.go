package image

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/containerd/containerd/v2/core/images"
	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// labelPulled is the label on image names that were created by a pull.
const labelPulled = "slipway.io/pulled"

// localDomain is the domain in the names of images that were created or loaded on this host.
const localDomain = "localhost"

// access decides which stored images the kubelet sees, and how it identifies them.
//
// The kubelet records the credentials of each pull under the image's ID. It lets every pod use an
// image without a record, because it assumes that an administrator has loaded the image. There are
// two exceptions:
//
//   - A pulled image has no record until the kubelet has received the result of the pull. The same
//     is true if the kubelet was killed before it wrote the record. In addition, after images have
//     been removed to free space, upstream's kubelet deletes the records of images that containers
//     use. access hides such an image: the kubelet then pulls the image again with the pod's
//     credentials, or rejects the pod.
//   - An image that was created on this host has a record after a pod has pulled a copy of it from
//     any registry. Other pods would then have to pull the image as well, although no registry has
//     the local name. Therefore, the ID that the kubelet sees for a local name is the name itself,
//     which no pull returns.
type access struct {
	images    images.Store
	hasRecord func(id string) bool
	// finished contains the specifications of completed pulls. After a pull, the kubelet requests
	// the image's size before it creates the pull record.
	finished sync.Map
}

// finish allows one status request for a pulled image that has no record yet. The request must have
// the same specification as the pull. Only the kubelet can send such a request, because the
// specification contains pod annotations that other clients do not have.
func (a *access) finish(image *criapi.ImageSpec) {
	if len(image.GetAnnotations()) > 0 {
		a.finished.Store(specification(image), true)
	}
}

// check returns the status of the image with the given name as the kubelet should see it. image is
// the specification in the kubelet's request.
func (a *access) check(ctx context.Context, name string, image *criapi.ImageSpec, resp *criapi.ImageStatusResponse) (*criapi.ImageStatusResponse, error) {
	id := resp.GetImage().GetId()
	if id == "" {
		return resp, nil
	}
	if ref, err := reference.ParseDockerRef(name); err == nil && reference.Domain(ref) == localDomain {
		pulled, err := a.isPulled(ctx, ref.String())
		if err != nil {
			return nil, err
		}
		if !pulled {
			resp.Image.Id = ref.String()
			return resp, nil
		}
	}
	if a.hasRecord == nil {
		return resp, nil
	}
	if _, finished := a.finished.LoadAndDelete(specification(image)); finished || a.hasRecord(id) {
		return resp, nil
	}
	if pulled, err := a.isPulled(ctx, id); err != nil || !pulled {
		return resp, err
	}
	if len(image.GetAnnotations()) == 0 {
		// The kubelet has already decided that the pod may use the image, and now reads the image's
		// user. If the record has been deleted since then, the decision might be wrong.
		return nil, status.Error(codes.FailedPrecondition, "the image must be pulled again")
	}
	return &criapi.ImageStatusResponse{}, nil
}

// isPulled reports whether a name was created by a pull.
func (a *access) isPulled(ctx context.Context, name string) (bool, error) {
	record, err := a.images.Get(ctx, name)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read image record: %w", err)
	}
	return record.Labels[labelPulled] != "", nil
}

// specification returns a string that identifies an image's name and the pod that uses the image.
func specification(image *criapi.ImageSpec) string {
	parts := []string{image.GetImage()}
	for _, key := range slices.Sorted(maps.Keys(image.GetAnnotations())) {
		parts = append(parts, key, image.GetAnnotations()[key])
	}
	return strings.Join(parts, "\x00")
}
