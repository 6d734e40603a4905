package volumeplugin

import (
	"context"
	"log/slog"
	"time"
)

// EndedCalls is a component of every master. When it starts, it records that the driver calls of
// the master's earlier processes have ended, so that the leader can call the drivers. It must start
// after the registry, which kills the drivers, and before DetachRecovery.
type EndedCalls struct {
	Records *SharedRecords
}

// Name returns the component's name.
func (*EndedCalls) Name() string { return "flexvolume-ended-calls" }

// Run retries until the API server responds. Then it calls ready and waits until ctx is done.
func (e *EndedCalls) Run(ctx context.Context, ready func()) error {
	for {
		err := e.Records.endOwnCalls(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil {
			slog.Warn("cannot record the end of FlexVolume driver calls", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(minBackoff):
		}
	}
	ready()
	<-ctx.Done()
	return nil
}
