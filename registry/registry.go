// Package registry is the cluster's own image registry, at docker-registry.default.svc:5000. What it holds are the images of image streams: a repository
// `<project>/<stream>` is an image stream, its rights are those on imagestreams/layers, a push makes the stream and tags the image into it, and a pull
// also serves what a stream only refers to in another registry.
//
// Blobs and manifests are stored and served by github.com/distribution/distribution; this package stands in front of it. It is set up at the
// first request, so a cluster whose registry nobody uses pays for a listener.
//
// Source: OpenShift Container Platform 3.9 Architecture, integrated registry; 3.11 Cluster Administration, chapters 11 and 12; the OCI
// distribution specification 1.1.
package registry

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
)

// ServiceHost is the name under which the cluster's nodes and streams know the registry.
const ServiceHost = "docker-registry.default.svc:5000"

// Registry is the part that serves images.
type Registry struct {
	// Address is where it listens, such as "0.0.0.0:5000".
	Address string
	// CertFile and KeyFile are its serving certificate, read again for each connection.
	CertFile, KeyFile string
	// Hosts are further names, with ports, under which references mean this registry.
	Hosts []string
	// Client reaches the API server with the rights of system:registry or more. Users' requests go out with their own tokens.
	Client *rest.Config
	// Advertise is the IP address of this host that the service docker-registry leads to.
	Advertise net.IP
	// Dir holds the images.
	Dir string
	// ReadOnly refuses pushes.
	ReadOnly bool
}

// Name is the part's name.
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
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		r.announce(ctx)
	}()
	defer func() { <-announced }()
	front := &http.Server{
		Handler:           server,
		ReadHeaderTimeout: 30 * time.Second,
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: r.certificate},
		ErrorLog:          log.New(discard{}, "", 0), // clients that hang up
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if front.Shutdown(grace) != nil {
			_ = front.Close()
		}
	})
	defer stop()
	ready()
	if err := front.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve registry: %w", err)
	}
	return nil
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// certificate reads the files at each handshake, so that a renewed certificate counts at once.
func (r *Registry) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(r.CertFile, r.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read certificate of registry: %w", err)
	}
	return &pair, nil
}

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
	key, err := os.ReadFile(r.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("read key of registry: %w", err)
	}
	return &server{
		Registry: r, images: images, reviews: reviews, blobs: newSources(),
		store: lazy(func() (*store, error) { return openStore(context.WithoutCancel(ctx), r.Dir, r.ReadOnly, key) }),
	}, nil
}

// announce makes the service and its endpoints, and tries again until it has.
func (r *Registry) announce(ctx context.Context) {
	const pause = 2 * time.Second
	for ctx.Err() == nil {
		err := publish(ctx, r.Client, r.Advertise, r.Address)
		if err == nil {
			return
		}
		slog.Warn("announce registry", "error", err, "again in", pause)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}
