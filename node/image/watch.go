package image

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/slipway-platform/slipway/internal/diskspace"
)

// rate is a minimum download rate.
type rate struct {
	bytes  int64
	period time.Duration
}

// minRate returns the default minimum rate, which is far below the rates of slow connections. The
// rate is measured only while the registry is expected to send data.
func minRate() rate { return rate{512 << 10, time.Minute} }

// watchInterval is the interval between checks of a pull.
const watchInterval = 100 * time.Millisecond

// watch cancels a pull if the registry is too slow, or if only the reserve is left on the disk.
type watch struct {
	dir     string
	reserve diskspace.Reserve
	min     rate
}

// start returns a context that is canceled when the pull must be canceled. The context's cause is
// the reason. The caller must call stop when the pull has finished.
func (w watch) start(parent context.Context) (ctx context.Context, stop func(), err error) {
	if err := w.checkDisk(); err != nil {
		return nil, nil, err
	}
	m := &meter{}
	ctx, cancel := context.WithCancelCause(context.WithValue(parent, meterKey{}, m))
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.run(ctx, m, cancel)
	}()
	return ctx, func() { cancel(nil); <-done }, nil
}

func (w watch) run(ctx context.Context, m *meter, cancel context.CancelCauseFunc) {
	tick := time.NewTicker(watchInterval)
	defer tick.Stop()
	elapsed, bytes := m.total()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := w.checkDisk(); err != nil {
			cancel(err)
			return
		}
		waitedNow, bytesNow := m.total()
		if waitedNow-elapsed < w.min.period {
			continue
		}
		if bytesNow-bytes < w.min.bytes {
			cancel(&rejection{codes.DeadlineExceeded, "it sends less than 512 KiB a minute"})
			return
		}
		elapsed, bytes = waitedNow, bytesNow
	}
}

// checkDisk returns a rejection if only the reserve is left on the disk that stores images.
func (w watch) checkDisk() error {
	err := w.reserve.Check(w.dir)
	full := (*diskspace.Full)(nil)
	if errors.As(err, &full) {
		return &rejection{codes.ResourceExhausted, "the image does not fit on the node's disk: " + full.Error() +
			"; remove images or volumes of the node, or use a smaller image"}
	}
	return err
}
