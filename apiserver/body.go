package apiserver

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	workestimate "k8s.io/apiserver/pkg/util/flowcontrol/request"
)

// A request requires a priority and fairness seat only while the server works on it. A client that
// sends a body slowly, or not at all, must not occupy a seat. Therefore, the server receives the
// body first.

// Limits on bodies that are received before their requests have seats: sizes in bytes, and numbers
// of concurrent bodies per tenant.
const (
	tinyBody, smallBody = 4 << 10, 64 << 10
	// largeBody exceeds the maximum size of bodies that upstream and webhooks accept.
	largeBody                        = 5 << 20
	maxLargeBodies, maxWaitingBodies = 4, 1_000
	// maxArriving is the maximum number of bodies that the server receives at the same time from a
	// tenant or, for clients that are not logged in, from an address. maxArrivingSmall is the
	// maximum number of these bodies that can be larger than tinyBody.
	maxArriving, maxArrivingSmall = 2_000, 200
)

const (
	// bodyTimeout is the maximum time that a client can take to send a body.
	bodyTimeout = 30 * time.Second
	// seatTimeout is the maximum time that a request waits for its seat after its body has been
	// received.
	seatTimeout = 15 * time.Second
)

// arrivals limits how many bodies each sender sends at the same time, because a body occupies
// memory until it is complete.
type arrivals struct{ all, small shares }

func newArrivals() *arrivals {
	const remedy = "requests at the same time whose bodies are incomplete; send them faster, or one after the other"
	return &arrivals{
		all: shares{requests: maxArriving, timeout: costlyTimeout, remedy: remedy}, small: shares{requests: maxArrivingSmall, timeout: costlyTimeout, remedy: remedy},
	}
}

// receive receives the first bytes of a body. It calls fill with the number of bytes to receive:
// first with tinyBody and then, unless the body is complete, with smallBody. fill reports whether
// the body is complete.
func (a *arrivals) receive(ctx context.Context, sender string, fill func(size int) (complete bool)) error {
	started, err := a.all.acquire(ctx, sender)
	if err != nil {
		return err
	}
	defer started()
	if fill(tinyBody) {
		return nil
	}
	arrived, err := a.small.acquire(ctx, sender)
	if err != nil {
		return err
	}
	defer arrived()
	fill(smallBody)
	return nil
}

type bodyKey struct{}

// body is a request's body. A part of it might already have been received.
type body struct {
	io.ReadCloser
	request *http.Request
	control *http.ResponseController
	begin   bytes.Buffer
	err     error // error to return after begin; if nil, the rest of the body follows
}

// Receive prepares requests for ReceiveFirst. It must wrap the handler chain that uses
// ReceiveFirst.
func Receive(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Body == nil || r.Body == http.NoBody {
			next.ServeHTTP(w, r)
			return
		}
		b := &body{ReadCloser: r.Body, request: r, control: http.NewResponseController(w)}
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		r.Body = b
		next.ServeHTTP(w, r)
	})
}

// Read returns the part of the body that has already been received, and then reads the rest.
func (b *body) Read(p []byte) (int, error) {
	if b.begin.Len() > 0 {
		return b.begin.Read(p)
	}
	if b.err != nil {
		return 0, b.err
	}
	return b.ReadCloser.Read(p)
}

// ReceiveFirst wraps priority and fairness so that a request's body is received before the request
// queues for a seat. Without it, the server reads a body only after its request has a seat.
// Long-lived connections do not require seats, and their bodies are streamed.
func (c *Costs) ReceiveFirst(seats flowcontrol.Interface) flowcontrol.Interface {
	return receiveFirst{seats, c}
}

type receiveFirst struct {
	flowcontrol.Interface
	costs *Costs
}

// Handle implements flowcontrol.Interface.
func (f receiveFirst) Handle(ctx context.Context, digest flowcontrol.RequestDigest,
	note func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	estimate func() workestimate.WorkEstimate, queue fairqueuing.QueueNoteFn, execute func()) {
	b, ok := ctx.Value(bodyKey{}).(*body)
	if !ok {
		f.Interface.Handle(ctx, digest, note, estimate, queue, execute)
		return
	}
	defer f.costs.receive(ctx, b)()
	// The time that the client takes to send the body does not count toward seatTimeout.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), seatTimeout)
	defer cancel()
	defer context.AfterFunc(b.request.Context(), cancel)()
	f.Interface.Handle(ctx, digest, note, estimate, queue, execute)
}

// receive receives a body, unless the body is larger than the server accepts. If an error occurs,
// reading the body returns the error. The caller must call release when the request is finished.
func (c *Costs) receive(ctx context.Context, b *body) (release func()) {
	release = func() {}
	live := b.request.Context() // net/http cancels this context after it has sent the response

	_ = b.control.SetReadDeadline(time.Now().Add(bodyTimeout)) // this fails only in tests
	defer func() {
		if live.Err() == nil {
			_ = b.control.SetReadDeadline(time.Time{})
		}
	}()
	tenant := c.sender(ctx, b)
	if tenant == "" {
		b.fill(largeBody)
		return release
	}
	err := c.arrivals.receive(live, tenant, func(size int) bool {
		b.fill(size)
		return b.err != nil
	})
	if err != nil {
		b.err = err
	}
	if b.err == nil {
		done, err := c.bodies.acquire(live, tenant)
		if err != nil {
			b.err = err
			return release
		}
		release = done
	}
	if b.err == nil {
		b.fill(largeBody)
	}
	return release
}

// sender returns the tenant that sends a body. Clients that are not logged in are distinguished by
// their addresses.
func (c *Costs) sender(ctx context.Context, b *body) string {
	tenant := c.tenantOf(b.request.WithContext(ctx))
	if u, ok := request.UserFrom(ctx); ok && tenant != "" && u.GetName() == user.Anonymous {
		return senderAt(b.request.RemoteAddr)
	}
	return tenant
}

// fill receives the body until begin contains size bytes or the body is complete.
func (b *body) fill(size int) {
	_, err := io.CopyN(&b.begin, b.ReadCloser, int64(size-b.begin.Len()))
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = apierrors.NewBadRequest("the body did not arrive within " + bodyTimeout.String())
	}
	b.err = err
}
