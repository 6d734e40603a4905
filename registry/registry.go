// Package registry is the cluster's own image registry, docker-registry.default.svc:5000. It
// contains the images of image streams: a repository `<project>/<stream>` is an image stream, and
// its rights are those on imagestreams/layers. A push creates the stream and tags the image into
// it. A pull also serves images that a stream refers to in other registries.
//
// github.com/distribution/distribution stores and serves blobs and manifests behind this package.
// The first request opens it, so that an unused registry costs only a listener.
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

	"github.com/slipway-platform/slipway/internal/keypair"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// ServiceHost is the registry's host for nodes and image streams.
const ServiceHost = "docker-registry.default.svc:5000"

// Registry is the component that serves images.
type Registry struct {
	// Address is the address that it listens on, such as "0.0.0.0:5000".
	Address string
	// CertFile and KeyFile are the serving certificate. Each handshake reads them.
	CertFile, KeyFile string
	// Hosts are further host:port names of this registry in references.
	Hosts []string
	// Client has the rights of system:registry, and rights to watch namespaces and to list and
	// remove images. Requests on behalf of users use their own tokens.
	Client *rest.Config
	// Advertise is the IP address of this host for the endpoints of the service docker-registry.
	Advertise net.IP
	// Storage stores the images. Unless it has `redirect`, clients are not redirected to the
	// storage.
	Storage configuration.Storage
	// Remotes reads other registries.
	Remotes *registryclient.Pool
	// Route is the host of the registry's route for clients outside of the cluster. It is optional.
	Route string
	// Reserve is the disk space that pushes leave free, if Storage is a directory.
	Reserve Reserve
	// ProjectQuota is the maximum bytes of a project, or Unlimited. QuotaAnnotation overrides it.
	ProjectQuota int64

	note func(string)
}

// Notes sets a function that shows a degraded state in the status of the host. It gets "" for a
// normal state.
func (r *Registry) Notes(note func(string)) { r.note = note }

// Name returns the name of the component.
func (*Registry) Name() string { return "registry" }

// Run serves until ctx ends.
func (r *Registry) Run(ctx context.Context, ready func()) error {
	server, err := r.server(ctx)
	if err != nil {
		return err
	}
	defer server.close()
	listener, err := net.Listen("tcp", r.Address)
	if err != nil {
		return fmt.Errorf("listen for registry: %w", err)
	}
	var tasks sync.WaitGroup
	defer tasks.Wait()
	tasks.Go(func() { r.announce(ctx) })
	tasks.Go(func() { server.namespaces.run(ctx) })
	tasks.Go(func() { server.tidy(ctx, r.note) })
	front := frontOf(ctx, server)
	front.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: keypair.Loader(r.CertFile, r.KeyFile)}
	defer context.AfterFunc(ctx, func() { shutDown(front, 5*time.Second) })()
	ready()
	if err := front.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve registry: %w", err)
	}
	return nil
}

// frontOf returns a server whose requests end with ctx.
func frontOf(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler: handler, ReadHeaderTimeout: 30 * time.Second,
		ErrorLog:    log.New(discard{}, "", 0), // clients that close connections
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
}

// shutDown waits at most grace for open requests.
func shutDown(front *http.Server, grace time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if front.Shutdown(ctx) != nil {
		_ = front.Close()
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// server makes what answers requests.
func (r *Registry) server(ctx context.Context) (*server, error) {
	images, err := imageclient.NewForConfig(r.Client)
	if err != nil {
		return nil, fmt.Errorf("connect registry: %w", err)
	}
	reviews, err := authorizationclient.NewForConfig(r.Client)
	if err != nil {
		return nil, fmt.Errorf("connect registry: %w", err)
	}
	settings, err := r.settings()
	if err != nil {
		return nil, err
	}
	projects, err := newNamespaces(r.Client)
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
		Registry: r, name: rand.Text(), images: images, reviews: reviews, blobs: newSources(), lookups: make(slots, maxLookups),
		store: lazy(func() (*store, error) { return openStore(context.WithoutCancel(ctx), settings) }),
	}, nil
}

// settings returns distribution's settings. The registry's private key derives the secret that
// signs the states of uploads. With the same key, uploads continue after a restart.
func (r *Registry) settings() (*configuration.Configuration, error) {
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read key of registry: %w", err)
	}
	secret := sha256.Sum256(append([]byte("uploads of the registry\n"), key...))
	settings := &configuration.Configuration{Storage: maps.Clone(r.Storage), HTTP: configuration.HTTP{Secret: hex.EncodeToString(secret[:])}}
	settings.Storage["delete"] = configuration.Parameters{"enabled": true}
	if settings.Storage["redirect"] == nil {
		settings.Storage["redirect"] = configuration.Parameters{"disable": true}
	}
	// An index can name platforms that were not pushed.
	settings.Validation.Manifests.Indexes.Platforms = "none"
	return settings, nil
}

// announce creates the service, its endpoints and its route, and retries until it succeeds.
func (r *Registry) announce(ctx context.Context) {
	const pause = 2 * time.Second
	for ctx.Err() == nil {
		err := publish(ctx, r.Client, r.Advertise, r.Address)
		if err == nil && r.Route != "" {
			err = expose(ctx, r.Client, r.Route)
		}
		if err == nil {
			return
		}
		slog.Warn("announce registry", "error", err, "retryAfter", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
