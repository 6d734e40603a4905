package platform

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// errNotRunning says that no supervisor answers for a data directory.
var errNotRunning = errors.New("slipway is not running; start it with: slipway up")

// client asks the supervisor of a data directory over its socket.
type client struct {
	http http.Client
}

func newClient(socket string) *client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	return &client{http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 5 * time.Second}}
}

// status asks how the host is; errNotRunning if nobody answers.
func (c *client) status(ctx context.Context) (Status, error) {
	var status Status
	response, err := c.do(ctx, http.MethodGet, "/status")
	if err != nil {
		return status, err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&status); err != nil {
		return status, fmt.Errorf("read status: %w", err)
	}
	return status, nil
}

// stop asks the supervisor to stop everything and end; it answers before it has.
func (c *client) stop(ctx context.Context) error {
	response, err := c.do(ctx, http.MethodPost, "/stop")
	if err != nil {
		return err
	}
	return response.Body.Close()
}

func (c *client) do(ctx context.Context, method, path string) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://slipway"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("ask supervisor: %w", err)
	}
	response, err := c.http.Do(request)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return nil, errNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("ask supervisor: %w", err)
	}
	return response, nil
}
