package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/internal/unixsocket"
	"github.com/slipway-platform/slipway/network/cni"
	"github.com/slipway-platform/slipway/network/vxlan"
)

// timeouts contains the maximum times to wait for objects that a new pod needs.
type timeouts struct {
	// labels is the maximum time to wait for the pod's labels. The kubelet and this component watch
	// pods separately, so either of them can receive the pod first. After the timeout, the pod is
	// isolated until its labels arrive.
	labels time.Duration
	// network is the maximum time to wait for the network ID of a new project. Without an ID, the
	// pod does not start, and the kubelet retries.
	network time.Duration
}

func defaultTimeouts() timeouts { return timeouts{labels: 2 * time.Second, network: 5 * time.Second} }

const (
	labelPoll = 20 * time.Millisecond
	// requestTimeout is the maximum time to read a request and to write the response.
	requestTimeout = 10 * time.Second
)

// server serves requests from the CNI plugin. Each connection is for one pod.
type server struct {
	listener net.Listener
	requests chan chan<- error
	objects  *objects
	tunnel   *vxlan.Tunnel
	timeouts timeouts
	tasks    sync.WaitGroup
}

// listen creates the socket. Only root can connect to it.
func listen(path string, o *objects, tunnel *vxlan.Tunnel, limits timeouts) (*server, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("create socket directory: %w", err)
	}
	listener, err := unixsocket.Listen(path)
	if err != nil {
		return nil, err
	}
	return &server{listener: listener, requests: make(chan chan<- error), objects: o, tunnel: tunnel, timeouts: limits}, nil
}

// serve accepts connections until close is called.
func (s *server) serve(ctx context.Context) {
	for {
		conn, err := s.listener.Accept()
		if err != nil {
			return // the listener is closed
		}
		s.tasks.Go(func() {
			defer conn.Close()
			_ = conn.SetDeadline(time.Now().Add(requestTimeout))
			var pod cni.Pod
			if err := json.NewDecoder(conn).Decode(&pod); err != nil {
				return
			}
			var response cni.PolicyResponse
			if err := s.await(ctx, pod); err != nil {
				response.Error = err.Error()
			}
			_ = json.NewEncoder(conn).Encode(response) // without a response, the plugin fails
		})
	}
}

// await waits until the kernel enforces a new pod's policies.
func (s *server) await(ctx context.Context, pod cni.Pod) error {
	if plugin := s.objects.plugin(); plugin == networkplugin.Multitenant || plugin != networkplugin.Subnet && s.tunnel.Active() {
		err := wait.PollUntilContextTimeout(ctx, labelPoll, s.timeouts.network, true, func(context.Context) (bool, error) {
			_, exists := s.objects.netID(pod.Namespace)
			return exists, nil
		})
		if err != nil {
			return fmt.Errorf("project %q has no network ID yet", pod.Namespace)
		}
	}
	if policies, err := s.objects.policies.GetIndexer().ByIndex(cache.NamespaceIndex, pod.Namespace); err == nil && len(policies) > 0 {
		// If the labels do not arrive before the timeout, the pod is isolated.
		_ = wait.PollUntilContextTimeout(ctx, labelPoll, s.timeouts.labels, true, func(context.Context) (bool, error) {
			return s.objects.find(pod) != nil, nil
		})
	}
	done := make(chan error, 1)
	select {
	case s.requests <- done:
	case <-ctx.Done():
		return errStopped
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errStopped
	}
}

// close stops the server and waits until its connections are closed. The connections' context must
// be done.
func (s *server) close() {
	s.listener.Close()
	s.tasks.Wait()
}
