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

// death ends the controller at a call: whatever it asks afterwards of the API server or the driver is not sent, as if the process had been killed.
type death struct {
	after bool // the call has its effect, but no answer
	left  atomic.Int64
	dead  chan struct{}
	die   func()
}

func newDeath(at int64, after bool) *death {
	d := &death{after: after, dead: make(chan struct{})}
	d.left.Store(at)
	d.die = sync.OnceFunc(func() { close(d.dead) })
	return d
}

var errDead = errors.New("the process is dead")

// call lets one call through, or not.
func (d *death) call(do func() error) error {
	left := d.left.Add(-1)
	if left > 0 {
		return do()
	}
	if left == 0 && d.after {
		_ = do()
	}
	d.die()
	return errDead
}

// transport puts itself between the controller and the API server. Lists, watches and events are no steps of an operation.
func (d *death) transport(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (answer *http.Response, err error) {
		isRead := r.Method == http.MethodGet && strings.Count(r.URL.Path, "/") <= 4
		if isRead || strings.HasSuffix(r.URL.Path, "/events") {
			select {
			case <-d.dead:
				return nil, errDead
			default:
				return next.RoundTrip(r)
			}
		}
		err = d.call(func() error { answer, err = next.RoundTrip(r); return err })
		if errors.Is(err, errDead) && answer != nil {
			_ = answer.Body.Close()
			answer = nil
		}
		return answer, err
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// intercept puts itself between the controller and the driver.
func (d *death) intercept(ctx context.Context, method string, request, reply any, connection *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	if !strings.HasPrefix(method, "/csi.v1.Controller/") || strings.HasSuffix(method, "GetCapabilities") || strings.HasSuffix(method, "ListVolumes") {
		return invoke(ctx, method, request, reply, connection, options...)
	}
	err := d.call(func() error { return invoke(ctx, method, request, reply, connection, options...) })
	if errors.Is(err, errDead) {
		return status.Error(codes.Canceled, err.Error())
	}
	return err
}

// serveUntilDeath runs the controller until the call at which it dies, and then another one in its place.
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

// life takes a volume through everything; abandoned deletes the claim right after it was made.
func (c *cluster) life(abandoned bool) {
	c.create(c.claim("data"))
	name := "pvc-" + string(c.getClaim("data").UID)
	if !abandoned {
		c.bound("data")
		c.create(c.attachment("va", name, "node-1"))
		eventually.True(c.t, "the volume is attached", func() bool { va := c.getVA("va"); return va != nil && va.Status.Attached })
		c.detach("va")
		eventually.True(c.t, "the volume is detached", func() bool { return c.getVA("va") == nil })
	}
	c.deleteClaim("data")
	eventually.True(c.t, "the claim is gone", func() bool { return c.getClaim("data") == nil })
	eventually.True(c.t, "the PersistentVolume is gone", func() bool { return c.getPV(name) == nil })
	if volumes, attachments := len(c.driver.Volumes()), c.driver.Attachments(); volumes != 0 || attachments != 0 {
		c.t.Errorf("the driver has %d volumes and %d attachments left", volumes, attachments)
	}
}

// steps are more than the calls of a volume's life, so that the last ones end it whole.
const steps = 14

// The process dies at each call of a volume's life in turn, before the call had an effect and after; another one puts everything in order.
func TestTheProcessMayDieAtEveryStep(t *testing.T) {
	for _, abandoned := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			for step := int64(1); step <= steps; step++ {
				t.Run(fmt.Sprintf("abandoned=%v after=%v step=%d", abandoned, after, step), func(t *testing.T) {
					t.Parallel()
					c := newCluster(t, fake.Options{})
					d := newDeath(step, after)
					c.serveUntilDeath(d)
					c.life(abandoned)
				})
			}
		}
	}
}
