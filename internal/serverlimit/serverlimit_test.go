package serverlimit

import (
	"net/http"
	"net/http/httptest"
	"strings"
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
		// The server closes the connection, so that the client might not receive the response.
		if got, err := send(2 * MaxHeaderBytes); err == nil && got != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("HTTP/2 %v: large headers get %d", http2, got)
		}
		if server.Config.ReadHeaderTimeout != headerTimeout {
			t.Errorf("clients have %s to send headers", server.Config.ReadHeaderTimeout)
		}
	}
}
