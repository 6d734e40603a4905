// Package registry implements the cluster's image registry at docker-registry.default.svc:5000. It
// stores the images of image streams: the repository `<project>/<stream>` corresponds to an image
// stream. Access to the repository requires permissions on imagestreams/layers. A push creates the
// stream and tags the image into it. A pull also serves images in other registries that a stream
// only references.
//
// Behind this package, github.com/distribution/distribution stores and serves blobs and manifests.
// Distribution is set up on the first request, so an unused registry costs only a listener.
//
// Source: OpenShift Container Platform 3.9 Architecture, integrated registry; 3.11 Cluster
// Administration, chapters 11 and 12; the OCI distribution specification 1.1.
package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/controller"
	"github.com/slipway-platform/slipway/internal/diskspace"
	"github.com/slipway-platform/slipway/internal/keypair"
	"github.com/slipway-platform/slipway/internal/registryclient"
	"github.com/slipway-platform/slipway/internal/serverlimit"
)

// Registry is the component that serves images.
type Registry struct {
	// Address is the address to listen on, such as "0.0.0.0:5000".
	Address string
	// CertFile and KeyFile are the files of the serving certificate and its key. They are reread
	// for each connection.
	CertFile, KeyFile string
	// Hosts lists additional names, with ports, that image references use for this registry.
	Hosts []string
	// Client connects to the API server with the permissions of system:registry, and with
	// permission to list and delete images. Requests on behalf of users use the users' own tokens.
	Client *rest.Config
	// Deps provides the namespace cache, which the controllers in this process share.
	Deps *controller.Deps
	// Advertise is the host's IP address, which becomes the endpoint of the docker-registry
	// service.
	Advertise net.IP
	// Storage configures where images are stored. Clients are redirected to the storage only if it has
	// the `redirect` setting.
	Storage configuration.Storage
	// Remotes connects to other registries.
	Remotes *registryclient.Pool
	// Route is the host name of the registry's route for external clients. If Route is empty, the
	// registry creates no route.
	Route string
	// Reserve is the space that pushes must leave free on Storage's disk. It applies only if
	// Storage is a directory.
	Reserve diskspace.Reserve
	// ProjectQuota is the maximum size of a project's content in bytes, or Unlimited. A project's
	// QuotaAnnotation overrides it.
	ProjectQuota int64

	// Recorder authenticates requests and records them in the API server's audit log.
	Recorder *apiserver.Recorder

	note func(string)
}

// Notes sets a function that receives, for the host's status, the reason why pushes are rejected.
// "" means that pushes are not rejected.
func (r *Registry) Notes(note func(string)) { r.note = note }

// Name returns the name of the component.
func (*Registry) Name() string { return "registry" }

// Run serves requests until ctx is done.
func (r *Registry) Run(ctx context.Context, ready func()) error {
	server, err := r.server(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	listener, err := listen(r.Address)
	if err != nil {
		return err
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { r.announce(ctx) })
	tasks.Go(func() { server.collectGarbage(ctx, r.note) })
	return serve(ctx, listener, r.CertFile, r.KeyFile, server, ready)
}

// listen opens the registry's listener on a master. The error contains the setting for the address.
func listen(address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for registry (slipway.registry.bindAddress in master-config.yaml): %w", err)
	}
	return listener, nil
}

// serve serves requests on a master until ctx is done.
func serve(ctx context.Context, listener net.Listener, certFile, keyFile string, handler http.Handler, ready func()) error {
	front := frontOf(ctx, handler)
	front.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: keypair.Loader(certFile, keyFile)}
	defer context.AfterFunc(ctx, func() { shutDown(front, 5*time.Second) })()
	ready()
	if err := front.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve registry: %w", err)
	}
	return nil
}

// frontOf returns an HTTP server for a registry. The contexts of its requests are canceled when ctx
// is canceled.
func frontOf(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 30 * time.Second, IdleTimeout: 90 * time.Second, MaxHeaderBytes: serverlimit.MaxHeaderBytes, HTTP2: serverlimit.HTTP2(serverlimit.UploadBuffer),
		ErrorLog:    log.New(discard{}, "", 0), // discard messages about closed connections
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// shutDown stops a server. It waits until active requests have completed or the timeout has
// expired, and then closes the remaining connections.
func shutDown(front *http.Server, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if front.Shutdown(ctx) != nil {
		_ = front.Close()
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// server creates the registry's HTTP handler.
func (r *Registry) server(ctx context.Context) (*server, error) {
	images, err := imageclient.NewForConfig(r.Client)
	if err != nil {
		return nil, fmt.Errorf("create registry client: %w", err)
	}
	reviews, err := authorizationclient.NewForConfig(r.Client)
	if err != nil {
		return nil, fmt.Errorf("create registry client: %w", err)
	}
	settings, err := r.settings()
	if err != nil {
		return nil, err
	}
	projects, err := newNamespaces(r.Deps)
	if err != nil {
		return nil, err
	}
	dir := ""
	if r.Storage.Type() == "filesystem" {
		dir, _ = r.Storage.Parameters()["rootdirectory"].(string)
	}
	if r.note == nil {
		r.note = func(string) {}
	}
	return &server{
		namespaces: projects, uploads: newUploads(),
		guard: &guard{
			dir: dir, reserve: r.Reserve, usage: newUsage(),
			quota: func(project string) int64 { return projects.quota(project, r.ProjectQuota) },
		},
		Registry: r, name: rand.Text(), images: images, reviews: reviews, blobs: newSources(), lookups: make(slots, maxLookups), shares: newShares(),
		store: lazy(func() (*store, error) { return openStore(context.WithoutCancel(ctx), settings) }),
	}, nil
}

// settings returns distribution's settings. Upload states are signed with a secret that is derived
// from the registry's key. Because the key stays the same, uploads can continue after a restart.
func (r *Registry) settings() (*configuration.Configuration, error) {
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read registry key: %w", err)
	}
	secret := sha256.Sum256(append([]byte("uploads of the registry\n"), key...))
	settings := &configuration.Configuration{Storage: maps.Clone(r.Storage), HTTP: configuration.HTTP{Secret: hex.EncodeToString(secret[:])}}
	settings.Storage["delete"] = configuration.Parameters{"enabled": true}
	if settings.Storage["redirect"] == nil {
		settings.Storage["redirect"] = configuration.Parameters{"disable": true}
	}
	// Accept indexes that list platforms whose images were never pushed to this registry.
	settings.Validation.Manifests.Indexes.Platforms = "none"
	return settings, nil
}

// announce creates the registry's service, endpoints and route. It retries until it succeeds or ctx
// is done.
func (r *Registry) announce(ctx context.Context) {
	const retryInterval = 2 * time.Second
	for ctx.Err() == nil {
		err := publish(ctx, r.Client, r.Advertise, r.Address)
		if err == nil && r.Route != "" {
			err = expose(ctx, r.Client, r.Route)
		}
		if err == nil {
			return
		}
		slog.Warn("cannot create the service and route of the registry", "error", err, "retryAfter", retryInterval)
		select {
		case <-ctx.Done():
		case <-time.After(retryInterval):
		}
	}
}
