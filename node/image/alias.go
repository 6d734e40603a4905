package image

import (
	"context"
	"fmt"
	"sync"

	client "github.com/containerd/containerd/v2/client"
	"github.com/distribution/reference"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/payload/manifest"
)

// openshiftImages maps OpenShift 3's images to Slipway's images with the same purpose. The keys are
// repositories in any registry, so manifests that refer to a mirror work as well.
func openshiftImages() map[string]string {
	return map[string]string{
		"openshift3/ose-pod":               PauseName,
		"openshift3/ose-egress-router":     EgressRouterName,
		"openshift3/ose-egress-http-proxy": EgressHTTPProxyName,
		"openshift3/ose-egress-dns-proxy":  EgressDNSProxyName,
		"openshift3/ose-descheduler":       DeschedulerName,
		"openshift3/oauth-proxy":           OAuthProxyName,
		"openshift/oauth-proxy":            OAuthProxyName,
	}
}

// createOnDemand returns the image with the given name if the node creates this image when a pod
// needs it. ok is false for other names.
func createOnDemand(name string) (img Image, ok bool, err error) {
	switch name {
	case EgressRouterName:
		img, err = singleProgram(name, manifest.EgressRouter)
	case EgressHTTPProxyName:
		img, err = singleProgram(name, manifest.EgressRouter, "http-proxy")
	case EgressDNSProxyName:
		img, err = singleProgram(name, manifest.EgressRouter, "dns-proxy")
	case OAuthProxyName:
		img, err = singleProgram(name, manifest.OAuthProxy)
	default:
		return Image{}, false, nil
	}
	return img, true, err
}

// aliases provides Slipway's own images to pods. A pod can use OpenShift 3's name for an image, or
// the name of an image that the node creates on demand. A reference with a digest never refers to a
// Slipway image.
type aliases struct {
	store  Store
	client *client.Client
	lock   sync.Mutex // held during load
}

// find returns the name of the Slipway image for a reference. ok is false if there is no such
// image.
func (*aliases) find(image string) (name string, ok bool) {
	ref, err := reference.ParseDockerRef(image)
	if err != nil {
		return "", false
	}
	if _, hasDigest := ref.(reference.Digested); hasDigest {
		return "", false
	}
	if name, ok = openshiftImages()[reference.Path(ref)]; ok {
		return name, true
	}
	_, ok, _ = createOnDemand(ref.String())
	return ref.String(), ok
}

// provide creates the image if necessary, or waits until Loader has loaded it. It returns the image
// ID.
func (a *aliases) provide(ctx context.Context, name string) (id string, err error) {
	img, onDemand, err := createOnDemand(name)
	if err != nil {
		return "", err
	}
	if onDemand {
		err = a.load(ctx, img)
	} else {
		_, err = awaitImage(ctx, a.client, name, nil)
	}
	if err != nil {
		return "", err
	}
	image, err := a.client.GetImage(ctx, name)
	if err != nil {
		return "", fmt.Errorf("find image %s: %w", name, err)
	}
	config, err := image.Config(ctx)
	if err != nil {
		return "", fmt.Errorf("read image %s: %w", name, err)
	}
	return config.Digest.String(), nil
}

// load creates an image. The lock ensures that two calls do not write the same layer at the same
// time.
func (a *aliases) load(ctx context.Context, img Image) error {
	a.lock.Lock()
	defer a.lock.Unlock()
	_, err := a.store.Load(ctx, img)
	return err
}

// isCurrent reports whether the image need not be created. After an upgrade, the previous version's
// image must be replaced.
func (a *aliases) isCurrent(ctx context.Context, name string) bool {
	img, onDemand, err := createOnDemand(name)
	return !onDemand || err == nil && a.store.has(ctx, a.client, img)
}

// pullAlias provides an image to a pod without pulling it.
func (s *imageServer) pullAlias(ctx context.Context, name string) (*criapi.PullImageResponse, error) {
	id, err := s.aliases.provide(ctx, name)
	if err == nil {
		err = s.waitKnown(ctx, name, id)
	}
	if err != nil {
		return nil, status.Error(codes.Unavailable, err.Error())
	}
	return &criapi.PullImageResponse{ImageRef: id}, nil
}

// aliasStatus returns the status of the image to which an alias refers.
func (s *imageServer) aliasStatus(ctx context.Context, name string, req *criapi.ImageStatusRequest) (*criapi.ImageStatusResponse, error) {
	if !s.aliases.isCurrent(ctx, name) {
		return &criapi.ImageStatusResponse{}, nil // so that the kubelet pulls the image
	}
	resp, err := s.next.ImageStatus(ctx, &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name}, Verbose: req.GetVerbose()})
	if err != nil {
		return nil, err
	}
	return s.access.check(ctx, name, req.GetImage(), resp)
}
