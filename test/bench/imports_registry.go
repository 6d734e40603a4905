package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// responseDelay is added to each response. It is a typical round-trip time to a registry in the
// same country.
const responseDelay = 10 * time.Millisecond

// farRegistry is a registry with one repository. It runs in a side's network and counts requests.
type farRegistry struct {
	content    http.Handler
	server     *http.Server
	repository string
	requests   atomic.Int64
}

func newFarRegistry(h *host.Host, tags int) (*farRegistry, error) {
	f := &farRegistry{content: registry.New(registry.Logger(log.New(io.Discard, "", 0)))}
	if err := f.fill(tags, "first"); err != nil {
		return nil, err
	}
	f.server = &http.Server{Handler: f, ReadHeaderTimeout: time.Minute}
	var listener net.Listener
	err := h.Do(func() (err error) {
		listener, err = net.Listen("tcp", "127.0.0.1:0")
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listen for registry: %w", err)
	}
	go func() { _ = f.server.Serve(listener) }()
	f.repository = listener.Addr().String() + "/" + farRepository
	return f, nil
}

const farRepository = "team/app"

func tagName(n int) string { return fmt.Sprintf("v1.%d", n) }

// fill pushes a different image to each tag.
func (f *farRegistry) fill(tags int, word string) error {
	local := httptest.NewServer(f.content)
	defer local.Close()
	var pushes errgroup.Group
	pushes.SetLimit(4)
	for n := range tags {
		pushes.Go(func() error {
			tag, err := name.NewTag(strings.TrimPrefix(local.URL, "http://") + "/" + farRepository + ":" + tagName(n))
			if err != nil {
				return err
			}
			config, err := empty.Image.ConfigFile()
			if err != nil {
				return err
			}
			config = config.DeepCopy()
			config.OS, config.Architecture, config.Author = "linux", "amd64", fmt.Sprint(word, n)
			image, err := mutate.ConfigFile(empty.Image, config)
			if err != nil {
				return err
			}
			return remote.Write(tag, image)
		})
	}
	return pushes.Wait()
}

// ServeHTTP delays each response.
func (f *farRegistry) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.requests.Add(1)
	select {
	case <-time.After(responseDelay):
	case <-r.Context().Done():
		return
	}
	f.content.ServeHTTP(w, r)
}

func (f *farRegistry) stop() { _ = f.server.Close() }
