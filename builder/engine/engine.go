// Package engine runs BuildKit inside the build process: the solver, the runc worker and the
// Dockerfile frontend. The client connects to them in memory, so no other process can connect.
//
// Source: github.com/moby/buildkit, cmd/buildkitd, which runs the same components as a daemon.
package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/moby/buildkit/cache/remotecache"
	inlinecache "github.com/moby/buildkit/cache/remotecache/inline"
	registrycache "github.com/moby/buildkit/cache/remotecache/registry"
	"github.com/moby/buildkit/client"
	daemon "github.com/moby/buildkit/cmd/buildkitd/config"
	"github.com/moby/buildkit/control"
	"github.com/moby/buildkit/frontend"
	dockerfile "github.com/moby/buildkit/frontend/dockerfile/builder"
	"github.com/moby/buildkit/frontend/gateway/forwarder"
	"github.com/moby/buildkit/session"
	"github.com/moby/buildkit/solver"
	"github.com/moby/buildkit/solver/bboltcachestorage"
	"github.com/moby/buildkit/util/db/boltutil"
	"github.com/moby/buildkit/util/resolver"
	"github.com/moby/buildkit/util/resolver/config"
	"github.com/moby/buildkit/worker"
	"google.golang.org/grpc"
	"google.golang.org/grpc/test/bufconn"
)

// DockerfileFrontend is the name of the Dockerfile frontend in solve requests.
const DockerfileFrontend = "dockerfile.v0"

// maxMessageBytes is the maximum size of a message between the client and the solver, in bytes.
const maxMessageBytes = 16 << 20

// Config configures an engine.
type Config struct {
	// Root is the directory for layers, including their content and metadata.
	Root string
	// Runc is the path of runc, which starts the build steps.
	Runc string
	// Authorities maps the host[:port] of a registry to files with additional CA certificates for that
	// registry.
	Authorities map[string][]string
}

// Engine is a running BuildKit instance.
type Engine struct {
	client *client.Client
	closes []func() error
}

// Start starts an engine. Its steps share the network and user namespaces of this process.
func Start(ctx context.Context, c Config) (_ *Engine, err error) {
	e := &Engine{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("start build engine: %w", err), e.Close())
		}
	}()
	if err := os.MkdirAll(c.Root, 0o711); err != nil {
		return nil, err
	}
	controller, err := e.controller(ctx, c)
	if err != nil {
		return nil, err
	}
	listener := bufconn.Listen(maxMessageBytes)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(maxMessageBytes), grpc.MaxSendMsgSize(maxMessageBytes))
	controller.Register(server)
	serveErr := make(chan error, 1)
	go func() { serveErr <- server.Serve(listener) }()
	e.onClose(func() error {
		server.Stop()
		return <-serveErr
	})
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	if e.client, err = client.New(ctx, "passthrough:///engine", client.WithContextDialer(dial)); err != nil {
		return nil, err
	}
	e.onClose(e.client.Close)
	return e, nil
}

// Close stops the engine. It does not delete Root.
func (e *Engine) Close() error {
	var errs []error
	for i := len(e.closes) - 1; i >= 0; i-- {
		errs = append(errs, e.closes[i]())
	}
	return errors.Join(errs...)
}

// Prune deletes layers and sources that have been unused for maxAge. It then deletes the least
// recently used layers and sources until the total size of the rest is at most maxBytes. If sources
// is true, Prune also deletes all local sources.
func (e *Engine) Prune(ctx context.Context, maxAge time.Duration, maxBytes int64, sources bool) error {
	passes := [][]client.PruneOption{{client.WithKeepOpt(maxAge, 0, 0, 0)}, {client.WithKeepOpt(0, 0, maxBytes, 0)}}
	if sources {
		passes = append(passes, []client.PruneOption{client.WithFilter([]string{"type==" + string(client.UsageRecordTypeLocalSource)})})
	}
	for _, options := range passes {
		if err := e.client.Prune(ctx, nil, append(options, client.PruneAll)...); err != nil {
			return fmt.Errorf("delete old layers: %w", err)
		}
	}
	return nil
}

// onClose registers a function for Close to call. Close calls the functions in reverse order.
func (e *Engine) onClose(f func() error) { e.closes = append(e.closes, f) }

// controller creates the solver.
func (e *Engine) controller(ctx context.Context, c Config) (*control.Controller, error) {
	sessions, err := session.NewManager()
	if err != nil {
		return nil, err
	}
	registries := map[string]config.RegistryConfig{}
	for host, files := range c.Authorities {
		registries[host] = config.RegistryConfig{RootCAs: files}
	}
	hosts := resolver.NewRegistryConfig(registries)
	w, err := newWorker(ctx, c, hosts)
	if err != nil {
		return nil, err
	}
	workers := &worker.Controller{}
	if err := workers.Add(w); err != nil {
		return nil, err
	}
	cache, err := bboltcachestorage.NewStore(filepath.Join(c.Root, "cache.db"))
	if err != nil {
		return nil, err
	}
	e.onClose(cache.Close)
	history, err := boltutil.Open(filepath.Join(c.Root, "history.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	e.onClose(history.Close)
	controller, err := control.NewController(control.Opt{
		SessionManager:   sessions,
		WorkerController: workers,
		Frontends: map[string]frontend.Frontend{
			DockerfileFrontend: forwarder.NewGatewayForwarder(workers.Infos(), dockerfile.Build),
		},
		ResolveCacheExporterFuncs: map[string]remotecache.ResolveCacheExporterFunc{"inline": inlinecache.ResolveCacheExporterFunc()},
		ResolveCacheImporterFuncs: map[string]remotecache.ResolveCacheImporterFunc{
			"registry": registrycache.ResolveCacheImporterFunc(sessions, w.ContentStore(), hosts),
		},
		CacheManager:   solver.NewCacheManager(ctx, "local", cache, worker.NewCacheResultStorage(workers)),
		HistoryDB:      history,
		HistoryConfig:  &daemon.HistoryConfig{MaxEntries: new(int64(1))}, // unused by the builder
		CacheStore:     cache,
		LeaseManager:   w.LeaseManager(),
		ContentStore:   w.ContentStore(),
		GarbageCollect: w.GarbageCollect,
		GracefulStop:   ctx.Done(),
	})
	if err != nil {
		return nil, err
	}
	e.onClose(controller.Close) // also closes the workers
	return controller, nil
}
