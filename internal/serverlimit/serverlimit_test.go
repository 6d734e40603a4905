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
		send := func(bytes int) int {
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("X-Long", strings.Repeat("x", bytes))
			response, err := server.Client().Do(request)
			if err != nil {
				return http.StatusRequestHeaderFieldsTooLarge // the client can reject it itself
			}
			defer response.Body.Close()
			return response.StatusCode
		}
		if got := send(0); got != http.StatusOK {
			t.Fatalf("the first request gets %d", got)
		}
		server.CloseClientConnections()
		for bytes, want := range map[int]int{MaxHeaderBytes / 2: http.StatusOK, 2 * MaxHeaderBytes: http.StatusRequestHeaderFieldsTooLarge} {
			if got := send(bytes); got != want {
				t.Errorf("HTTP/2 %v: headers of %d bytes get %d, want %d", http2, bytes, got, want)
			}
		}
		if server.Config.ReadHeaderTimeout != headerTimeout {
			t.Errorf("clients have %s to send headers", server.Config.ReadHeaderTimeout)
		}
	}
}
