package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"time"
)

// ErrNotRunning is returned if no supervisor listens on the socket. If the user is not allowed to
// access the socket, fs.ErrPermission is returned instead.
var ErrNotRunning = errors.New("supervisor is not running")

// Client sends requests to a supervisor over its socket.
type Client struct {
	http http.Client
}

// NewClient returns a client for the supervisor that listens on a Unix socket.
func NewClient(socket string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}
	transport := &http.Transport{DialContext: dial, DisableKeepAlives: true}
	return &Client{http.Client{Transport: transport, Timeout: 5 * time.Second}}
}

// Status returns the supervisor's status, or ErrNotRunning if no supervisor listens on the socket.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	resp, err := c.do(ctx, http.MethodGet, "/status")
	if err != nil {
		return status, err
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&status); err != nil {
		return status, fmt.Errorf("read status: %w", err)
	}
	return status, nil
}

// Stop requests that the supervisor stop all processes and exit. It returns before the processes
// have exited.
func (c *Client) Stop(ctx context.Context) error {
	resp, err := c.do(ctx, http.MethodPost, "/stop")
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Restart requests that the supervisor restart a process. It returns before the process has exited.
func (c *Client) Restart(ctx context.Context, process string) error {
	resp, err := c.do(ctx, http.MethodPost, "/restart/"+url.PathEscape(process))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		return fmt.Errorf("restart process %q: the supervisor returned %s; after an upgrade, restart Slipway first", process, resp.Status)
	}
	return nil
}

func (c *Client) do(ctx context.Context, method, path string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://supervisor"+path, nil)
	if err != nil {
		return nil, fmt.Errorf("create request to supervisor: %w", err)
	}
	resp, err := c.http.Do(req)
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" && !errors.Is(err, fs.ErrPermission) {
		return nil, ErrNotRunning
	}
	if err != nil {
		return nil, fmt.Errorf("send request to supervisor: %w", err)
	}
	return resp, nil
}
