package csi

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/storage/csi/fake"
)

// servedDriver is a fake driver that serves until ctx is done or until it fails.
type servedDriver struct {
	socket  string
	failure chan error
}

func (d *servedDriver) Run(ctx context.Context, ready func()) error {
	server, err := fake.New(fake.Options{}).Listen(d.socket)
	if err != nil {
		return err
	}
	defer server.Stop()
	ready()
	select {
	case <-ctx.Done():
		return nil
	case err := <-d.failure:
		return err
	}
}

func TestFailureOfEmbeddedDriverStopsAllComponents(t *testing.T) {
	dir, err := os.MkdirTemp("", "csi") // t.TempDir is too long for a socket path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	driver := &servedDriver{socket: filepath.Join(dir, "csi.sock"), failure: make(chan error)}
	started, stopped := make(chan struct{}), make(chan struct{})
	embedded := &Embedded{
		Driver: driver, Socket: driver.socket, KubeletDir: dir,
		Controller: &Controller{Config: &rest.Config{Host: "http://127.0.0.1:1"}},
		Others: []func(context.Context) error{func(ctx context.Context) error {
			close(started)
			<-ctx.Done()
			close(stopped)
			return nil
		}},
	}
	failure := errors.New("the disk is gone")
	got := make(chan error, 1)
	componenttest.Run(t, func(ctx context.Context, ready func()) error {
		got <- embedded.Run(ctx, ready)
		return nil
	})
	<-started
	eventually.True(t, "the driver is registered with the kubelet", func() bool {
		entries, err := os.ReadDir(filepath.Join(dir, "plugins_registry"))
		return err == nil && len(entries) == 1
	})
	driver.failure <- failure
	if err := <-got; !errors.Is(err, failure) {
		t.Errorf("got error %v, want %v", err, failure)
	}
	<-stopped
}
