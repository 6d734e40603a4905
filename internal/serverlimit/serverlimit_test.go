package serverlimit

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

func TestServerRejectsLargeHeaders(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		server := httptest.NewUnstartedServer(Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})))
		server.Config.MaxHeaderBytes = 1 << 20
		server.EnableHTTP2 = http2
		server.StartTLS()
		t.Cleanup(server.Close)
		send := func(bytes int) (status int, err error) {
			server.Client().CloseIdleConnections() // a connection keeps the limits that it began with
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				return 0, err
			}
			request.Header.Set("X-Long", strings.Repeat("x", bytes))
			response, err := server.Client().Do(request)
			if err != nil {
				return 0, err
			}
			return response.StatusCode, response.Body.Close()
		}
		for _, bytes := range []int{0, MaxHeaderBytes / 2} {
			if got, err := send(bytes); err != nil || got != http.StatusOK {
				t.Errorf("HTTP/2 %v: headers of %d bytes get %d, error %v", http2, bytes, got, err)
			}
		}
		// The server closes the connection, so the client might not receive the response.
		if got, err := send(2 * MaxHeaderBytes); err == nil && got != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("HTTP/2 %v: large headers get %d", http2, got)
		}
		if server.Config.ReadHeaderTimeout != headerTimeout {
			t.Errorf("clients have %s to send headers", server.Config.ReadHeaderTimeout)
		}
	}
}

// TestWaitingStreamsDoNotDelayOthers fills the buffers of streams whose handlers read nothing, and
// sends another request on the same connection.
func TestWaitingStreamsDoNotDelayOthers(t *testing.T) {
	read := make(chan struct{})
	var waiting sync.WaitGroup
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/wait" {
			waiting.Done()
			<-read
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	server.Config.HTTP2, server.EnableHTTP2 = HTTP2(RequestBuffer), true
	server.StartTLS()
	t.Cleanup(server.Close)
	body := make([]byte, 4*RequestBuffer)
	post := func(path string) error {
		response, err := server.Client().Post(server.URL+path, "application/json", bytes.NewReader(body))
		if err != nil {
			return err
		}
		if response.ProtoMajor != 2 {
			err = fmt.Errorf("the protocol is %s", response.Proto)
		}
		return errors.Join(err, response.Body.Close())
	}
	if err := post("/"); err != nil { // this request opens the connection
		t.Fatal(err)
	}
	var clients sync.WaitGroup
	waiting.Add(maxStreams / 2)
	for range maxStreams / 2 {
		clients.Go(func() {
			if err := post("/wait"); err != nil {
				t.Error(err)
			}
		})
	}
	waiting.Wait()
	if err := post("/"); err != nil {
		t.Error(err)
	}
	close(read)
	clients.Wait()
}
