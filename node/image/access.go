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

// labelPulled is the label of the names of images that a pull has created.
const labelPulled = "slipway.io/pulled"

// localDomain is the domain of names of images that were created or loaded on this host.
const localDomain = "localhost"

// access decides which images of the store the kubelet sees, and how it identifies them.
//
// The kubelet records the credentials of each pull under the ID of the image. It gives an image
// without a record to every pod, because it assumes that an administrator loaded the image. Both
// have exceptions:
//
//   - A pulled image has no record before the kubelet has received the result of the pull, nor
//     after the kubelet was killed at this moment. After images were removed to free space,
//     upstream's kubelet also deletes the records of images that containers use. access hides such
//     an image: the kubelet then pulls it again, with the credentials of the pod, or rejects the
//     pod.
//   - An image of this host has a record after a pod pulled a copy, from any registry. Other pods
//     would have to pull the image, too, which no registry has. For the kubelet, the ID of a local
//     name is therefore the name: no pull returns it.
type access struct {
	images    images.Store
	hasRecord func(id string) bool
	// finished contains the specifications of pulls whose size the kubelet requests before it
	// creates the record.
	finished sync.Map
}

// finish allows one request for the status of a pulled image that has no record yet. It has the
// specification of the pull, which contains annotations of the pod that only the kubelet has.
func (a *access) finish(image *criapi.ImageSpec) {
	if len(image.GetAnnotations()) > 0 {
		a.finished.Store(specification(image), true)
	}
}

// check returns the status of the image with a name as the kubelet sees it. image is the
// specification in the kubelet's request.
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
		// The kubelet has already decided that the pod may use the image, and reads its user. If
		// the record was deleted since, the decision can be wrong.
		return nil, status.Error(codes.FailedPrecondition, "the image must be pulled again")
	}
	return &criapi.ImageStatusResponse{}, nil
}

// isPulled reports whether a pull has created a name.
func (a *access) isPulled(ctx context.Context, name string) (bool, error) {
	record, err := a.images.Get(ctx, name)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read record of image: %w", err)
	}
	return record.Labels[labelPulled] != "", nil
}

// specification identifies the name of an image and the pod that uses it.
func specification(image *criapi.ImageSpec) string {
	parts := []string{image.GetImage()}
	for _, key := range slices.Sorted(maps.Keys(image.GetAnnotations())) {
		parts = append(parts, key, image.GetAnnotations()[key])
	}
	return strings.Join(parts, "\x00")
}
