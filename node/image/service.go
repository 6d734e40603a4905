package image

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/distribution/reference"
	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	criapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/slipway-platform/slipway/internal/diskspace"
	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/internal/unixsocket"
)

// Service is the component through which the kubelet pulls images: a CRI image service in front of
// containerd's. Because pods specify the registries, Service pulls images itself: containerd would
// connect to any address and report the response. Service forwards all other calls to containerd.
//
// Dialer applies its policy to each connection, after name resolution and for each redirect. Hosts
// in the hosts.toml files in RegistryConfigDir can have any address, because the administrator
// specifies them. For each of an image's blobs, a registry must prove that the caller may read it,
// even if containerd already has the blob. Errors contain a reason, but no data from a server.
//
// The number of concurrent pulls per namespace is limited. A pull is canceled if the registry is
// too slow, or if only Reserve is left on the disk.
//
// If a pod uses OpenShift 3's name for an image of the platform's own pods, Service provides
// Slipway's image (see aliases). Pulled images for which the kubelet has no record are hidden (see
// access).
type Service struct {
	// Store is containerd's image store. Pulled images are added to it.
	Store Store
	// Socket is the Unix socket on which the service listens.
	Socket string
	// RegistryConfigDir contains a directory with a hosts.toml file for each registry that has
	// mirrors or settings.
	RegistryConfigDir string
	// SignaturePolicy is the path of the signature policy, in the format used by Podman and Skopeo.
	// The policy determines which images pods on the node may pull. If the file does not exist, all
	// images are allowed.
	SignaturePolicy string
	// SignatureStores is the directory with the files that define signature stores (Podman's and
	// Skopeo's registries.d). It is optional.
	SignatureStores string
	// Dialer connects to registries.
	Dialer *outbound.Dialer
	// Directory is containerd's directory. Pulls leave Reserve free on its disk.
	Directory string
	Reserve   diskspace.Reserve
	// HasPullRecord reports whether the kubelet has recorded which credentials were used to pull
	// the image with the given ID. If it is nil, no image is hidden.
	HasPullRecord func(id string) bool

	// Limits for tests. Zero means the default.
	minRate       rate
	minUnpackTime time.Duration
	maxGrowth     int64
}

// Name returns the component's name.
func (*Service) Name() string { return "image-service" }

// maxMessage is the maximum size of an image list, in bytes. It is the same as the kubelet's own
// limit.
const maxMessage = 16 << 20

// Run serves requests until ctx is done. It is ready once it is listening. Calls wait for
// containerd.
func (s *Service) Run(ctx context.Context, ready func()) error {
	listener, err := unixsocket.Listen(s.Socket)
	if err != nil {
		return fmt.Errorf("listen for the kubelet: %w", err)
	}
	defer listener.Close()
	connection, err := grpc.NewClient("unix://"+s.Store.Socket, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)))
	if err != nil {
		return fmt.Errorf("connect to containerd: %w", err)
	}
	defer connection.Close()
	client, err := s.Store.connect()
	if err != nil {
		return err
	}
	defer client.Close()
	watch := watch{s.Directory, s.Reserve, cmp.Or(s.minRate, minRate())}
	puller := &puller{
		client: client, snapshotter: s.Store.Snapshotter, hosts: hosts{s.RegistryConfigDir, s.Dialer}, policyFile: s.SignaturePolicy, storeDir: s.SignatureStores,
		decoding: semaphore.NewWeighted(maxDecoding), process: rand.Text(),
		unpacking: unpacking{
			newQueue(1, 1), s.Store.Socket, cmp.Or(s.minUnpackTime, minUnpackTime), &memory{maxGrowth: cmp.Or(s.maxGrowth, maxGrowth)},
		},
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessage))
	criapi.RegisterImageServiceServer(server, &imageServer{
		next: criapi.NewImageServiceClient(connection), aliases: &aliases{store: s.Store, client: client},
		access: &access{images: client.ImageService(), hasRecord: s.HasPullRecord},
		puller: puller, queue: newQueue(maxPulls, maxNamespacePulls), watch: watch,
	})
	stop := context.AfterFunc(ctx, server.Stop)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = poll(ctx, func() bool { return puller.removeInterrupted(ctx) == nil })
	}()
	defer func() { cancel(); <-done }()
	ready()
	if err := server.Serve(listener); err != nil && ctx.Err() == nil {
		return fmt.Errorf("serve images on %q: %w", s.Socket, err)
	}
	return nil
}

// imageServer pulls images and forwards other calls to containerd.
type imageServer struct {
	criapi.UnimplementedImageServiceServer
	next    criapi.ImageServiceClient
	aliases *aliases
	access  *access
	puller  *puller
	queue   *queue
	watch   watch
}

// PullImage pulls an image and returns its ID once containerd's CRI plugin finds the image.
func (s *imageServer) PullImage(ctx context.Context, req *criapi.PullImageRequest) (*criapi.PullImageResponse, error) {
	name := req.GetImage().GetImage()
	if alias, ok := s.aliases.find(name); ok {
		return s.pullAlias(ctx, alias)
	}
	ref, err := reference.ParseDockerRef(name)
	if err != nil {
		return nil, failure("", errInvalidName)
	}
	registry := reference.Domain(ref)
	start := time.Now()
	id, err := s.pull(ctx, req.GetSandboxConfig().GetMetadata().GetNamespace(), ref, credentials(req.GetAuth()))
	if err != nil {
		if ctx.Err() == nil {
			slog.WarnContext(ctx, "cannot pull image", "image", ref.String(), "duration", time.Since(start), "error", err)
		}
		return nil, failure(registry, err)
	}
	s.access.finish(req.GetImage())
	return &criapi.PullImageResponse{ImageRef: id}, nil
}

// pull waits for a slot, and then pulls an image for a pod in the given namespace.
func (s *imageServer) pull(ctx context.Context, namespace string, ref reference.Named, credentials credentialsFunc) (id string, err error) {
	release, err := s.queue.wait(ctx, namespace, ref.String())
	if err != nil {
		return "", err
	}
	defer release()
	ctx, stop, err := s.watch.start(ctx)
	if err != nil {
		return "", err
	}
	defer stop()
	id, err = s.puller.pull(ctx, namespace, ref, credentials)
	if err == nil {
		err = s.waitKnown(ctx, ref.String(), id)
	}
	if reason := (*rejection)(nil); err != nil && errors.As(context.Cause(ctx), &reason) {
		err = fmt.Errorf("%w: %w", reason, err)
	}
	return id, err
}

// knownTimeout is the timeout for waitKnown. Without it, waitKnown might never return if another
// pull assigns the name to a different image.
const knownTimeout = time.Minute

// waitKnown waits until the CRI plugin finds the image under its name. This takes a moment, because
// the plugin learns about new images from events.
func (s *imageServer) waitKnown(ctx context.Context, name, id string) error {
	ctx, cancel := context.WithTimeout(ctx, knownTimeout)
	defer cancel()
	return poll(ctx, func() bool {
		resp, err := s.next.ImageStatus(ctx, &criapi.ImageStatusRequest{Image: &criapi.ImageSpec{Image: name}})
		return err == nil && resp.GetImage().GetId() == id
	})
}

// ListImages forwards the call.
func (s *imageServer) ListImages(ctx context.Context, req *criapi.ListImagesRequest) (*criapi.ListImagesResponse, error) {
	return s.next.ListImages(ctx, req)
}

// StreamImages forwards the call.
func (s *imageServer) StreamImages(req *criapi.StreamImagesRequest, to grpc.ServerStreamingServer[criapi.StreamImagesResponse]) error {
	from, err := s.next.StreamImages(to.Context(), req)
	if err != nil {
		return err
	}
	for {
		resp, err := from.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := to.Send(resp); err != nil {
			return err
		}
	}
}

// ImageStatus forwards the call. If the kubelet must pull the image again, the response does not
// contain the image.
func (s *imageServer) ImageStatus(ctx context.Context, req *criapi.ImageStatusRequest) (*criapi.ImageStatusResponse, error) {
	if alias, ok := s.aliases.find(req.GetImage().GetImage()); ok {
		return s.aliasStatus(ctx, alias, req)
	}
	resp, err := s.next.ImageStatus(ctx, req)
	if err != nil {
		return nil, err
	}
	return s.access.check(ctx, req.GetImage().GetImage(), req.GetImage(), resp)
}

// RemoveImage forwards the call.
func (s *imageServer) RemoveImage(ctx context.Context, req *criapi.RemoveImageRequest) (*criapi.RemoveImageResponse, error) {
	return s.next.RemoveImage(ctx, req)
}

// ImageFsInfo forwards the call.
func (s *imageServer) ImageFsInfo(ctx context.Context, req *criapi.ImageFsInfoRequest) (*criapi.ImageFsInfoResponse, error) {
	return s.next.ImageFsInfo(ctx, req)
}
