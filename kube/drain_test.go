package kube

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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
	tracked := connrotation.NewDialer(d.dial) // as client-go's transport has them
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
	ended := make(chan struct{})
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
		defer close(ended)
		_, _ = conn.Read(make([]byte, 1)) // until the connection ends
	}()
	for range 2 {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
	<-ended
}
