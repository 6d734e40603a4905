package node

import (
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/cmd/kubelet/app"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/server"

	"github.com/slipway-platform/slipway/internal/serverlimit"
)

// syncTimeout is the maximum time that a request waits until the kubelet has received the node's
// pods.
const syncTimeout = time.Minute

// waitingAuth wraps the kubelet's authentication and authorization. After a restart, the kubelet
// serves requests before it has received the node's pods from the API server. Until then, it
// reports "pod does not exist" for running pods. Authentication is the first filter in the
// kubelet's server, so early requests wait in this filter.
type waitingAuth struct {
	server.AuthInterface
	// synced is closed when the kubelet has received the node's pods.
	synced  <-chan struct{}
	timeout time.Duration
	// headers limits the size of request headers, and the time to read them.
	headers serverlimit.Limiter
}

// newAuth returns the kubelet's own authentication and authorization, with caches of the given
// sizes. Requests wait for synced. newAuth reloads the CA bundle until stop is closed.
func newAuth(nodeName string, client kubernetes.Interface, config kubeletconfig.KubeletConfiguration, sizes CacheSizes, synced, stop <-chan struct{}) (*waitingAuth, error) {
	auth, err := bound(sizes, config, func(config kubeletconfig.KubeletConfiguration) (server.AuthInterface, error) {
		auth, reload, err := app.BuildAuth(types.NodeName(nodeName), client, config)
		if err != nil {
			return nil, fmt.Errorf("set up kubelet authentication: %w", err)
		}
		reload(stop)
		return auth, nil
	})
	if err != nil {
		return nil, err
	}
	return &waitingAuth{AuthInterface: auth, synced: synced, timeout: syncTimeout}, nil
}

// AuthenticateRequest authenticates a request. If authentication succeeds, it waits until the
// kubelet has received the node's pods from the API server. It stops waiting if the timeout expires
// or the client cancels the request.
func (a *waitingAuth) AuthenticateRequest(req *http.Request) (*authenticator.Response, bool, error) {
	a.headers.Apply(req)
	resp, ok, err := a.AuthInterface.AuthenticateRequest(req)
	if !ok || err != nil {
		return resp, ok, err
	}
	select {
	case <-a.synced:
		return resp, ok, nil
	default:
	}
	timeout := time.NewTimer(a.timeout)
	defer timeout.Stop()
	select {
	case <-a.synced:
	case <-timeout.C:
	case <-req.Context().Done():
	}
	return resp, ok, nil
}
