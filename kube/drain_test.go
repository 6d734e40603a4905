package kube

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/util/connrotation"
)

func TestRequestSurvivesRotationOfClientCertificate(t *testing.T) {
	proceed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first ")
		w.(http.Flusher).Flush()
		<-proceed
		_, _ = io.WriteString(w, "second")
	}))
	t.Cleanup(server.Close)
	d := newDrainer()
	tracked := connrotation.NewDialer(d.dial) // client-go's transport also uses this dialer
	client := &http.Client{Transport: &http.Transport{DialContext: tracked.DialContext}}
	resp, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	tracked.CloseAll()
	close(proceed)
	if body, err := io.ReadAll(resp.Body); err != nil || string(body) != "first second" {
		t.Errorf("body %q, %v", body, err)
	}
}

func TestClosedConnectionEndsWhenQuiet(t *testing.T) {
	done := make(chan struct{})
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Start()
	t.Cleanup(server.Close)
	d := newDrainer()
	d.quiet = time.Millisecond
	conn, err := d.dial(context.Background(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(done)
		_, _ = conn.Read(make([]byte, 1)) // returns when the connection is closed
	}()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	<-done
}

func TestDialWaitsForRestartingKubelet(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	d := newDrainer()
	results := make(chan error)
	go func() {
		conn, err := d.dial(t.Context(), "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		results <- err
	}()
	select {
	case err := <-results:
		t.Fatalf("the dial does not wait: %v", err)
	case <-time.After(2 * restartInterval):
	}
	if listener, err = net.Listen("tcp", address); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	if err := <-results; err != nil {
		t.Error(err)
	}

	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	d.restart = 0
	if _, err := d.dial(t.Context(), "tcp", address); err == nil {
		t.Error("the dial succeeds although nothing listens")
	}
}

func TestDialDoesNotWaitForStoppedKubelet(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	d := newDrainer()
	d.restart = time.Hour
	d.lastRenewal = func(_ context.Context, host string) time.Time {
		if host != "127.0.0.1" {
			t.Errorf("host %s", host)
		}
		return time.Now().Add(-time.Minute)
	}
	if _, err := d.dial(t.Context(), "tcp", address); err == nil || !strings.Contains(err.Error(), "connection refused; on its host, run: slipway status") {
		t.Errorf("error %v", err)
	}
}

func TestConnectionEndsIfKubeletDoesNotRespond(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") // only the kernel accepts connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	d := newDrainer()
	d.response = time.Millisecond
	conn, err := d.dial(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil || !strings.Contains(err.Error(), "does not respond within 1ms; on its host, run: slipway status") {
		t.Errorf("error %v", err)
	}
	_ = conn.Close()

	d.response = time.Hour
	if conn, err = d.dial(t.Context(), "tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for range 2 { // the first connection is also still in the queue
		peer, err := listener.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer peer.Close()
		if _, err := peer.Write([]byte("ab")); err != nil && peer.RemoteAddr().String() == conn.LocalAddr().String() {
			t.Fatal(err)
		}
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	if !conn.(*drainedConn).responds.Load() {
		t.Error("the deadline still applies after the first byte")
	}
}
