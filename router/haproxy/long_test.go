package haproxy

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/eventually"
)

// echo serves a slow download, which continues when more is closed, and a WebSocket that echoes
// messages.
func (b *fixture) echo(service string, more <-chan struct{}) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			_, _ = io.WriteString(w, "first half, ")
			w.(http.Flusher).Flush()
			select {
			case <-more:
				_, _ = io.WriteString(w, "second half")
			case <-r.Context().Done():
			}
			return
		}
		connection, stream, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer connection.Close()
		fmt.Fprint(connection, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n")
		_, _ = io.Copy(connection, stream)
	}))
	b.t.Cleanup(server.Close)
	b.pods[service] = append(b.pods[service], server.Listener.Addr().String())
}

func TestLongConnectionsOutliveReloads(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	more := make(chan struct{})
	b.echo("long", more)
	b.pod("web", "web", nil)
	b.route("long", "long.com", "long")
	b.route("web", "web.com", "web")
	b.run()
	b.until("http://web.com", "web")

	_, stream := b.dial("GET / HTTP/1.1\nHost: long.com\n\n")
	download, err := http.ReadResponse(stream, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer download.Body.Close()
	half := make([]byte, len("first half, "))
	if _, err := io.ReadFull(download.Body, half); err != nil {
		t.Fatal(err)
	}
	socket, reader := b.dial("GET / HTTP/1.1\nHost: long.com\nConnection: Upgrade\nUpgrade: websocket\nSec-WebSocket-Version: 13\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\n\n")
	if switched, err := http.ReadResponse(reader, nil); err != nil || switched.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the WebSocket returns %+v (%v)", switched, err)
	}
	before := b.reloaded()
	for i := range 3 {
		name := fmt.Sprint("next", i)
		// No spare backend has this shape, so the route needs a reload.
		b.route(name, name+".com", "web", annotated("haproxy.router.openshift.io/timeout", fmt.Sprint(20+i, "s")))
		b.apply()
		b.until("http://"+name+".com", "web")
		fmt.Fprintln(socket, name)
		if line, err := reader.ReadString('\n'); err != nil || line != name+"\n" {
			t.Fatalf("the WebSocket returns %q (%v)", line, err)
		}
	}
	eventually.True(t, "three reloads", func() bool { return b.reloaded()-before >= 3 })
	close(more)
	if rest, err := io.ReadAll(download.Body); err != nil || string(rest) != "second half" {
		t.Errorf("the rest of the download is %q (%v)", rest, err)
	}
}

// A user who owns a route can cause repeated reloads and keep a connection open across each reload.
// The number of previous processes must still be limited.
func TestPreviousProcessesAreLimited(t *testing.T) {
	t.Parallel()
	b := newFixture(t, nil)
	b.echo("long", make(chan struct{}))
	b.pod("web", "web", nil)
	b.route("long", "long.com", "long")
	b.route("web", "web.com", "web")
	b.engine.MaxFormer = 2
	b.run()
	b.until("http://web.com", "web")
	for i := range 4 {
		_, stream := b.dial("GET / HTTP/1.1\nHost: long.com\n\n")
		if response, err := http.ReadResponse(stream, nil); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("%+v, %v", response, err)
		}
		before, name := b.reloaded(), fmt.Sprint("next", i)
		// No spare backend has this shape, so the route needs a reload.
		b.route(name, name+".com", "web", annotated("haproxy.router.openshift.io/timeout", fmt.Sprint(20+i, "s")))
		b.apply()
		b.until("http://"+name+".com", "web")
		eventually.True(t, "a reload", func() bool { return b.reloaded() > before })
	}
	eventually.True(t, "the current process and two previous ones, each with a worker", func() bool {
		pids, _, err := ofDir(b.writer.Dir)
		return err == nil && len(pids) == 6
	})
}

func TestManyPreviousProcessesDelayReloads(t *testing.T) {
	e := &Engine{Interval: time.Second}
	for former, want := range map[int]time.Duration{0: time.Second, 8: time.Second, 9: 2 * time.Second, 32: 25 * time.Second} {
		if got := e.interval(former); got != want {
			t.Errorf("with %d previous processes, the interval is %s, want %s", former, got, want)
		}
	}
}

// dial starts a request on a separate connection.
func (b *fixture) dial(request string) (net.Conn, *bufio.Reader) {
	b.t.Helper()
	connection, err := net.Dial("tcp", "127.0.0.1:"+b.writer.Settings.Text("ROUTER_SERVICE_HTTP_PORT"))
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() { _ = connection.Close() })
	if _, err := io.WriteString(connection, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		b.t.Fatal(err)
	}
	return connection, bufio.NewReader(connection)
}
