// Package engine runs BuildKit inside the process of a build: its solver, its worker that starts runc, and its Dockerfile frontend, joined
// to its own client through memory. There is no daemon and no socket, so nothing outside of the process can ask it for anything.
//
// Source: github.com/moby/buildkit, cmd/buildkitd, which puts the same parts together as a daemon.
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

// DockerfileFrontend is the name by which a solve asks for the Dockerfile frontend.
const DockerfileFrontend = "dockerfile.v0"

// messageSize bounds a message between client and solver, in bytes.
const messageSize = 16 << 20

// Config says where an engine works and whom it trusts.
type Config struct {
	// Root is a directory of the engine's own: layers, their contents and what it knows of them.
	Root string
	// Runc is the path of runc, which starts the steps of a build.
	Runc string
	// Authorities are files of certificate authorities that a registry is trusted by, beside the system's, by the registry's host[:port].
	Authorities map[string][]string
}

// Engine is a running BuildKit. Close ends it.
type Engine struct {
	client *client.Client
	closes []func() error
}

// Start starts an engine. Its steps share the network and the user namespace of the process, and see nothing else of it.
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
	listener := bufconn.Listen(messageSize)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(messageSize), grpc.MaxSendMsgSize(messageSize))
	controller.Register(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	e.closing(func() error {
		server.Stop()
		return <-served
	})
	dial := func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }
	if e.client, err = client.New(ctx, "passthrough:///engine", client.WithContextDialer(dial)); err != nil {
		return nil, err
	}
	e.closing(e.client.Close)
	return e, nil
}

// Close ends what the engine runs. Its directory stays.
func (e *Engine) Close() error {
	var errs []error
	for i := len(e.closes) - 1; i >= 0; i-- {
		errs = append(errs, e.closes[i]())
	}
	return errors.Join(errs...)
}

// Prune removes layers and folders that no build has used for as long as unused, then the oldest ones until the rest takes no more than most bytes. With folders, it
// also removes everything that was read of the folders of jobs.
func (e *Engine) Prune(ctx context.Context, unused time.Duration, most int64, folders bool) error {
	what := [][]client.PruneOption{{client.WithKeepOpt(unused, 0, 0, 0)}, {client.WithKeepOpt(0, 0, most, 0)}}
	if folders {
		what = append(what, []client.PruneOption{client.WithFilter([]string{"type==" + string(client.UsageRecordTypeLocalSource)})})
	}
	for _, options := range what {
		if err := e.client.Prune(ctx, nil, append(options, client.PruneAll)...); err != nil {
			return fmt.Errorf("remove old layers: %w", err)
		}
	}
	return nil
}

// closing notes what Close does, the last first.
func (e *Engine) closing(f func() error) { e.closes = append(e.closes, f) }

// controller puts the solver together.
func (e *Engine) controller(ctx context.Context, c Config) (*control.Controller, error) {
	sessions, err := session.NewManager()
	if err != nil {
		return nil, err
	}
	trusted := map[string]config.RegistryConfig{}
	for host, files := range c.Authorities {
		trusted[host] = config.RegistryConfig{RootCAs: files}
	}
	hosts := resolver.NewRegistryConfig(trusted)
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
	e.closing(cache.Close)
	history, err := boltutil.Open(filepath.Join(c.Root, "history.db"), 0o600, nil)
	if err != nil {
		return nil, err
	}
	e.closing(history.Close)
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
		HistoryConfig:  &daemon.HistoryConfig{MaxEntries: new(int64(1))}, // nobody asks for it
		CacheStore:     cache,
		LeaseManager:   w.LeaseManager(),
		ContentStore:   w.ContentStore(),
		GarbageCollect: w.GarbageCollect,
		GracefulStop:   ctx.Done(),
	})
	if err != nil {
		return nil, err
	}
	e.closing(controller.Close) // and its workers
	return controller, nil
}
