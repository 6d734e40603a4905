package liveness

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/storage/csi/driver"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

func TestHealth(t *testing.T) {
	hang := fake.Options{Plan: fake.Always("Probe", fake.Fault{Hang: true})}
	drivers := map[string]Driver{"good": connect(t, fake.New(fake.Options{})), "hangs": connect(t, fake.New(hang))}
	unready := fake.New(fake.Options{})
	unready.SetReady(false)
	drivers["unready"] = connect(t, unready)

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &Server{Listener: listener, Drivers: drivers, Timeout: time.Second}
	componenttest.Run(t, server.Run)
	tests := []struct {
		path string
		code int
		text string
	}{
		{"/healthz/good", http.StatusOK, "ok"},
		{"/healthz/hangs", http.StatusServiceUnavailable, `probe CSI driver "hangs"`},
		{"/healthz/unready", http.StatusServiceUnavailable, `CSI driver "unready" is not ready`},
		{"/healthz/other", http.StatusNotFound, `unknown CSI driver "other"`},
		{"/healthz", http.StatusServiceUnavailable, `CSI driver "unready" is not ready`},
	}
	for _, tt := range tests {
		response, err := http.Get("http://" + listener.Addr().String() + tt.path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != tt.code || !strings.Contains(string(body), tt.text) {
			t.Errorf("%s: %d %q, want %d %q", tt.path, response.StatusCode, body, tt.code, tt.text)
		}
	}
}

func connect(t *testing.T, d *fake.Driver) *driver.Driver {
	t.Helper()
	socket := filepath.Join(t.TempDir(), "csi.sock")
	server, err := d.Listen(socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	connection, err := driver.Dial(socket, driver.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	return connection
}
