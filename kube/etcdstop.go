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

// leaderInterval is the interval between checks of whether etcd has a leader while the process
// shuts down.
const leaderInterval = 100 * time.Millisecond

// noQuorum returns the response to requests that arrive after a member has stopped because it had
// no leader. etcd clients do not retry requests that fail with this code.
func noQuorum() error {
	return status.Error(codes.FailedPrecondition, "etcd has lost its quorum, and this process stops")
}

// quorumGuard rejects requests that would each wait for several seconds because the member has no
// leader.
type quorumGuard struct {
	mu                sync.Mutex
	requested, closed chan struct{}
	once              sync.Once
}

// channels returns the channel that is closed when the process shuts down, and the channel that is
// closed when etcd has stopped without a leader.
func (g *quorumGuard) channels() (requested, closed chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.requested == nil {
		g.requested, g.closed = make(chan struct{}), make(chan struct{})
	}
	return g.requested, g.closed
}

// intercept implements grpc.UnaryServerInterceptor.
func (g *quorumGuard) intercept(ctx context.Context, request any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	_, closed := g.channels()
	select {
	case <-closed:
		return nil, noQuorum()
	default:
	}
	return next(ctx, request)
}

// Drain stops etcd if etcd has no leader, so that the API server, which stops before etcd, does not
// wait for responses.
func (e *Etcd) Drain() {
	requested, _ := e.drain.channels()
	e.drain.once.Do(func() { close(requested) })
}

// wait returns when ctx is done or etcd fails.
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

// failed handles a listener's error. If etcd itself has stopped because of an error, its listeners
// fail first. In this case, failed adds the remedy for a stopped etcd.
func (e *Etcd) failed(server *embed.Etcd, err error) error {
	select {
	case <-server.Server.StoppingNotify():
		return e.stopped(err)
	default:
		return err
	}
}

// stopped adds a remedy to the error in case other members have removed this member: etcd then
// stops without giving a reason.
func (e *Etcd) stopped(err error) error {
	if e.Peers == nil {
		return err
	}
	return fmt.Errorf("%w; if this master was removed from the cluster, run `slipway down --purge` and let it join again", err)
}

// closeServer stops etcd. It uses a hard stop if etcd has no leader, because etcd can then neither
// respond to in-flight requests nor transfer the leadership. It also uses a hard stop if the server
// is not ready, because etcd's Close then never returns.
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
