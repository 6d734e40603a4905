package csi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// death simulates killing the controller at one of its calls: later requests to the API server or
// the driver are not sent.
type death struct {
	after     bool // true if the call takes effect but its response is lost
	remaining atomic.Int64
	dead      chan struct{}
	die       func()
}

func newDeath(at int64, after bool) *death {
	d := &death{after: after, dead: make(chan struct{})}
	d.remaining.Store(at)
	d.die = sync.OnceFunc(func() { close(d.dead) })
	return d
}

var errKilled = errors.New("the process is dead")

// call performs one call, unless the process is dead.
func (d *death) call(do func() error) error {
	remaining := d.remaining.Add(-1)
	if remaining > 0 {
		return do()
	}
	if remaining == 0 && d.after {
		_ = do()
	}
	d.die()
	return errKilled
}

// transport wraps the API server connection. Lists, watches and events are not counted as steps.
func (d *death) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (response *http.Response, err error) {
		isRead := r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") <= 4
		if isRead || strings.HasSuffix(r.URL.Path, "/events") {
			select {
			case <-d.dead:
				return nil, errKilled
			default:
				return next.RoundTrip(r)
			}
		}
		err = d.call(func() error { response, err = next.RoundTrip(r); return err })
		if errors.Is(err, errKilled) && response != nil {
			_ = response.Body.Close()
			response = nil
		}
		return response, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercept wraps the driver connection.
func (d *death) intercept(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if !strings.HasPrefix(method, "/csi.v1.Controller/") || strings.HasSuffix(method, "GetCapabilities") || strings.HasSuffix(method, "ListVolumes") {
		return invoke(ctx, method, request, reply, connection, options...)
	}
	err := d.call(func() error { return invoke(ctx, method, request, reply, connection, options...) })
	if errors.Is(err, errKilled) {
		return status.Error(codes.Canceled, err.Error())
	}
	return err
}

// serveUntilDeath runs the controller until it dies, then starts another controller.
func (c *cluster) serveUntilDeath(d *death) {
	first := c.start(func(part *Controller) {
		part.Config.WrapTransport = d.transport
		part.Dial.Dial = []grpc.DialOption{grpc.WithChainUnaryInterceptor(d.intercept)}
	})
	ctx, cancel := context.WithCancel(context.Background())
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-d.dead:
			first.Stop()
			c.start()
		case <-ctx.Done():
		}
	})
	c.t.Cleanup(func() { cancel(); waiting.Wait() })
}

// lifecycle runs a complete volume lifecycle. If abandoned is set, the claim is deleted immediately
// after its creation.
func (c *cluster) lifecycle(abandoned bool) {
	c.create(c.claim("data"))
	name := "pvc-" + string(c.getClaim("data").UID)
	if !abandoned {
		c.waitBound("data")
		c.create(c.attachment("va", name, "node-1"))
		eventually.True(c.t, "the volume is attached", func() bool { va := c.getVA("va"); return va != nil && va.Status.Attached })
		c.detach("va")
		eventually.True(c.t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	}
	c.deleteClaim("data")
	eventually.True(c.t, "the claim is deleted", func() bool { return c.getClaim("data") == nil })
	eventually.True(c.t, "the PersistentVolume is deleted", func() bool { return c.getPV(name) == nil })
	if volumes, attachments := len(c.driver.Volumes()), c.driver.Attachments(); volumes != 0 || attachments != 0 {
		c.t.Errorf("the driver still has %d volumes and %d attachments", volumes, attachments)
	}
}

// steps is larger than the number of calls in a volume's lifecycle, so the last runs complete
// without a kill.
const steps = 14

// TestKillAtEveryStep kills the controller at each call in a volume's lifecycle, both before and
// after the call takes effect. Another controller must complete the work.
func TestKillAtEveryStep(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for step := int64(1); step <= steps; step++ {
				t.Run(fmt.Sprintf("abandoned=%v after=%v step=%d", abandoned, after, step), func(t *testing.T) {
					t.Parallel()
					c := newCluster(t, fake.Options{})
					d := newDeath(step, after)
					c.serveUntilDeath(d)
					c.lifecycle(abandoned)
				})
			}
		}
	}
}
