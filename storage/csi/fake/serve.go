package fake

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Server serves the driver on a socket until Stop is called.
type Server struct {
	driver *Driver
	socket string

	mu      sync.Mutex
	grpc    *grpc.Server
	stopped bool
	wg      sync.WaitGroup
	counts  map[string]int // number of calls by method
}

// Listen serves the driver on a Unix socket. The socket's directory must exist. Multiple sockets
// can serve the same driver, even concurrently. They share the storage.
func (d *Driver) Listen(socket string) (*Server, error) {
	s := &Server{driver: d, socket: socket, counts: map[string]int{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.listen()
}

// Stop closes all connections and removes the socket. It is idempotent.
func (s *Server) Stop() {
	s.mu.Lock()
	if !s.stopped {
		s.stopped = true
		s.grpc.Stop()
		_ = os.Remove(s.socket) // returns an error if the test has removed the directory
	}
	s.mu.Unlock()
	s.wg.Wait()
}

// Restart closes all connections and listens again.
func (s *Server) Restart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	old := s.grpc
	err := s.listen()
	// Stop the old server in the background, because Stop waits for connections that are being
	// established.
	s.wg.Go(old.Stop)
	return err
}

func (s *Server) listen() error {
	// Rename the new socket over the old socket, because a client that finds no socket would wait
	// before it retries.
	temporary := s.socket + "~"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove socket of an earlier driver: %w", err)
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: temporary, Net: "unix"})
	if err != nil {
		return fmt.Errorf("listen as CSI driver: %w", err)
	}
	listener.SetUnlinkOnClose(false) // Stop removes the socket
	if err := os.Rename(temporary, s.socket); err != nil {
		return errors.Join(fmt.Errorf("listen as CSI driver: %w", err), listener.Close())
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.serve), grpc.ConnectionTimeout(time.Second))
	csi.RegisterIdentityServer(server, s.driver)
	csi.RegisterControllerServer(server, s.driver)
	csi.RegisterNodeServer(server, s.driver)
	s.grpc = server
	s.wg.Go(func() { _ = server.Serve(listener) }) // returns an error only when stopped
	return nil
}

// serve applies the plan's fault to a call and records the call.
func (s *Server) serve(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	method := path.Base(info.FullMethod)
	response, err := s.response(ctx, method, s.fault(method), func() (any, error) { return handler(ctx, request) })
	s.driver.note(Call{Method: method, Request: request.(proto.Message), Code: status.Code(err)})
	return response, err
}

func (s *Server) fault(method string) Fault {
	s.mu.Lock()
	s.counts[method]++
	nth := s.counts[method]
	s.mu.Unlock()
	s.driver.mu.Lock()
	plan := s.driver.plan
	s.driver.mu.Unlock()
	if plan == nil {
		return Fault{}
	}
	return plan(method, nth)
}

func (s *Server) response(ctx context.Context, method string, fault Fault, call func() (any, error)) (any, error) {
	if fault.Delay > 0 {
		select {
		case <-time.After(fault.Delay):
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
	if fault.Before != nil {
		return nil, fault.Before
	}
	if err := ctx.Err(); err != nil {
		// Do not execute a call that its caller has canceled, because the caller might already have
		// sent the opposite request.
		return nil, status.FromContextError(err).Err()
	}
	response, err := call()
	switch {
	case err != nil:
		return nil, err
	case fault.Hang:
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	case fault.Crash:
		if err := s.Restart(); err != nil {
			return nil, status.Errorf(codes.Internal, "restart after %s: %v", method, err)
		}
		<-ctx.Done() // wait until the connection is closed, so that no response is sent
		return nil, status.Error(codes.Canceled, "crashed")
	case fault.Lie != nil:
		fault.Lie(response.(proto.Message))
	}
	return response, fault.After
}

func (d *Driver) note(call Call) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls = append(d.calls, call)
}
