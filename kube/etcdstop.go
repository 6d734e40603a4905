package kube

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// leaderInterval is the interval of checks, while the process stops, whether etcd has a leader.
const leaderInterval = 100 * time.Millisecond

// noQuorum returns the response to requests after the end of a member without a leader. Clients of
// etcd don't retry requests with this code.
func noQuorum() error {
	return status.Error(codes.FailedPrecondition, "etcd has lost its quorum, and this process stops")
}

// quorumGuard rejects requests that a member without a leader would let wait for seconds each.
type quorumGuard struct {
	mu                sync.Mutex
	requested, closed chan struct{}
	once              sync.Once
}

// channels returns the channels that are closed when the process stops, and when etcd has ended
// without a leader.
func (g *quorumGuard) channels() (requested, closed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requested == nil {
		g.requested, g.closed = make(chan struct{}), make(chan struct{})
	}
	return g.requested, g.closed
}

// intercept is the server's interceptor of requests.
func (g *quorumGuard) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	_, closed := g.channels()
	select {
	case <-closed:
		return nil, noQuorum()
	default:
	}
	return next(ctx, request)
}

// Drain ends etcd if it has no leader. Then the API server, which stops before etcd, waits for no
// response.
func (e *Etcd) Drain() {
	requested, _ := e.drain.channels()
	e.drain.once.Do(func() { close(requested) })
}

// wait returns when ctx ends or etcd fails.
func (e *Etcd) wait(ctx context.Context, server *embed.Etcd) error {
	requested, closed := e.drain.channels()
	var tick <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-server.Err():
			return e.failed(server, fmt.Errorf("serve etcd: %w", err))
		case <-server.Server.StopNotify():
			return e.stopped(errors.New("serve etcd: it stopped unexpectedly"))
		case <-requested:
			requested = nil
			ticker := time.NewTicker(leaderInterval)
			defer ticker.Stop()
			tick = ticker.C
		case <-tick:
			if server.Server.Leader() != 0 {
				continue
			}
			close(closed)
			server.Server.HardStop()
			<-ctx.Done()
			return nil
		}
	}
}

// failed returns the error of a listener. If etcd stopped because of an error, its listeners fail
// first.
func (e *Etcd) failed(server *embed.Etcd, err error) error {
	select {
	case <-server.Server.StoppingNotify():
		return e.stopped(err)
	default:
		return err
	}
}

// stopped adds the remedy for a member that others have removed: etcd stops without naming a
// reason.
func (e *Etcd) stopped(err error) error {
	if e.Peers == nil {
		return err
	}
	return fmt.Errorf("%w; if this master was removed from the cluster, run `slipway down --purge` and let it join again", err)
}

// closeServer ends etcd. Without a leader, it can neither respond to the requests in progress nor
// hand over the leadership, and etcd's Close never returns before the server is ready.
func closeServer(server *embed.Etcd) {
	ready := false
	select {
	case <-server.Server.ReadyNotify():
		ready = true
	default:
	}
	if !ready || server.Server.Leader() == 0 {
		server.Server.HardStop()
	}
	server.Close()
}
