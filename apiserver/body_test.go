package apiserver

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/util/flowcontrol"
	"k8s.io/apiserver/pkg/util/flowcontrol/fairqueuing"
	workestimate "k8s.io/apiserver/pkg/util/flowcontrol/request"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// oneSeat is a priority and fairness implementation with a single seat. taken counts the requests
// that have occupied the seat.
type oneSeat struct {
	flowcontrol.Interface
	seat  chan struct{}
	taken chan struct{}
}

func (s oneSeat) Handle(ctx context.Context, _ flowcontrol.RequestDigest, _ func(*flowcontrolv1.FlowSchema, *flowcontrolv1.PriorityLevelConfiguration, string),
	_ func() workestimate.WorkEstimate, _ fairqueuing.QueueNoteFn, execute func()) {
	select {
	case s.seat <- struct{}{}:
		s.taken <- struct{}{}
		execute()
		<-s.seat
	case <-ctx.Done():
	}
}

// newSeats returns a server that has a single seat for requests. The server responds with the
// request body.
func newSeats(t *testing.T, costs *Costs) (*httptest.Server, oneSeat) {
	t.Helper()
	seats := oneSeat{seat: make(chan struct{}, 1), taken: make(chan struct{}, 1_000)}
	queue := costs.ReceiveFirst(seats)
	server := httptest.NewServer(Receive(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: r.Header.Get("User")}))
		queue.Handle(r.Context(), flowcontrol.RequestDigest{}, nil, nil, nil, func() {
			text, err := io.ReadAll(r.Body)
			if err != nil {
				text = []byte(err.Error())
			}
			_, _ = w.Write(text)
		})
	})))
	t.Cleanup(server.Close)
	return server, seats
}

// begin sends a request's headers and the beginning of its body. The connection stays open until
// the test ends.
func begin(t *testing.T, server *httptest.Server, sender string, size int, start string) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if _, err := fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: a\r\nUser: %s\r\nContent-Length: %d\r\n\r\n%s", sender, size, start); err != nil {
		t.Fatal(err)
	}
	return conn
}

func post(t *testing.T, server *httptest.Server, sender, text string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("User", sender)
	response, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestSlowClientsOccupyNoSeats(t *testing.T) {
	server, seats := newSeats(t, userCosts())
	slow := begin(t, server, "mallory", 4, "ab")
	begin(t, server, "mallory", 2*smallBody, strings.Repeat("x", smallBody+1))
	for _, size := range []int{0, 5, smallBody - 1, smallBody, smallBody + 1, largeBody - 1, largeBody, largeBody + smallBody} {
		if text := strings.Repeat("y", size); post(t, server, "alice", text) != text {
			t.Errorf("a body of %d bytes was changed", size)
		}
		<-seats.taken
	}
	if count := len(seats.taken); count > 0 {
		t.Errorf("%d slow clients have a seat", count)
	}
	if _, err := io.WriteString(slow, "cd"); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the complete request has a seat", func() bool { return len(seats.taken) == 1 })
}

func TestLargeBodiesOfTenantAreLimited(t *testing.T) {
	costs := userCosts()
	costs.bodies.waiting = 0
	server, _ := newSeats(t, costs)
	for range maxLargeBodies {
		begin(t, server, "mallory", 2*smallBody, strings.Repeat("x", smallBody+1))
	}
	large := strings.Repeat("y", smallBody+1)
	eventually.True(t, "further large bodies are rejected", func() bool { return strings.Contains(post(t, server, "mallory", large), "too many large requests") })
	if post(t, server, "mallory", "small") != "small" || post(t, server, "alice", large) != large {
		t.Error("small bodies, or those of other tenants, are rejected")
	}
}

func TestIncompleteBodiesOfSenderAreLimited(t *testing.T) {
	const limit = 3
	costs := userCosts()
	costs.arrivals.small.requests = limit
	server, _ := newSeats(t, costs)
	for range limit {
		begin(t, server, "mallory", smallBody, strings.Repeat("x", tinyBody+1))
	}
	small, tiny := strings.Repeat("y", tinyBody+1), strings.Repeat("y", tinyBody-1)
	eventually.True(t, "further bodies are rejected", func() bool { return strings.Contains(post(t, server, "mallory", small), "bodies are incomplete") })
	if post(t, server, "mallory", tiny) != tiny || post(t, server, "alice", small) != small {
		t.Error("tiny bodies, or those of other tenants, are rejected")
	}
}
