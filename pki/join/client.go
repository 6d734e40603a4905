package join

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// Client sends requests to a master on behalf of a joining host.
type Client struct {
	// URL is the API server's address, such as https://192.0.2.10:8443.
	URL   string
	Token Token
	// Certificate is the kubelet's client certificate. It is set only if the host has already
	// joined the cluster.
	Certificate *tls.Certificate
}

const (
	// requestTimeout is the timeout for a request to the master, and dialTimeout is the timeout for
	// the connection.
	requestTimeout = 20 * time.Second
	dialTimeout    = 5 * time.Second
	// maxResponse is the maximum length of a response, in bytes.
	maxResponse = 8 << 20
	// maxClockDifference is the maximum difference between the clocks of the host and the master.
	// With a larger difference, the host might treat new certificates as not yet valid.
	maxClockDifference = 4 * time.Minute
)

// Kinds of request errors: ErrRetry means that the master might accept the same request later.
// ErrRejected means that the master will never accept the request.
var (
	ErrRetry    = errors.New("the master is not ready for the host yet")
	ErrRejected = errors.New("the master rejects the host")
)

// Authority returns the cluster's PEM-encoded CA certificate. It verifies the certificate against
// the token.
func (c Client) Authority(ctx context.Context) ([]byte, error) {
	// The client does not have the CA certificate yet. The request contains no secrets.
	data, err := c.send(ctx, &tls.Config{InsecureSkipVerify: true}, http.MethodGet, nil)
	if err != nil {
		return nil, err
	}
	authority, ok := c.Token.Trusted(data)
	if !ok {
		return nil, fmt.Errorf("the server at %s does not belong to the token's cluster; check the address, and that no proxy intercepts the connection", c.URL)
	}
	return authority, nil
}

// Join sends a host's request to join. If the master rejects the request, the error contains the
// master's reason.
func (c Client) Join(ctx context.Context, authority []byte, request Request) (*Response, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return nil, errors.New("read certificate authority: it is not a PEM certificate")
	}
	body, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("encode request to join: %w", err)
	}
	settings := &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	if c.Certificate != nil {
		settings.Certificates = []tls.Certificate{*c.Certificate}
	}
	data, err := c.send(ctx, settings, http.MethodPost, body)
	if err != nil {
		return nil, err
	}
	response := &Response{}
	if err := json.Unmarshal(data, response); err != nil {
		return nil, fmt.Errorf("read response of %s: %w; use the same version of slipway on all hosts", c.URL, err)
	}
	return response, nil
}

func (c Client) send(ctx context.Context, settings *tls.Config, method string, body []byte) ([]byte, error) {
	transport := &http.Transport{TLSClientConfig: settings, DisableKeepAlives: true, DialContext: (&net.Dialer{Timeout: dialTimeout}).DialContext}
	client := http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // otherwise, the redirect's target would receive the token
	}}
	request, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(c.URL, "/")+Path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("%q is not the address of a master; use https://HOST:8443", c.URL)
	}
	response, err := client.Do(request)
	if invalid := (x509.CertificateInvalidError{}); errors.As(err, &invalid) && invalid.Reason == x509.Expired {
		return nil, fmt.Errorf("the certificate of %s is not valid at %s, this machine's current time; set the clock of this machine", c.URL, time.Now().Format(time.RFC3339))
	}
	if err != nil {
		return nil, fmt.Errorf("the master does not respond: %w; check the address, and that the firewall of the master allows the port", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	if err != nil {
		return nil, fmt.Errorf("read response of %s: %w", c.URL, err)
	}
	if response.StatusCode != http.StatusOK {
		err := rejection(c.URL, response.StatusCode, data)
		if response.Header.Get("Retry-After") != "" {
			err = fmt.Errorf("%w: %w", ErrRetry, err)
		}
		return nil, err
	}
	return data, checkClock(response.Header.Get("Date"))
}

// rejection returns the reason why a master rejected a request.
func rejection(url string, code int, data []byte) error {
	switch code {
	case http.StatusForbidden:
		return rejected(strings.TrimSpace(string(data)))
	case http.StatusServiceUnavailable, http.StatusInternalServerError:
		return errors.New(strings.TrimSpace(string(data)))
	}
	return fmt.Errorf("%s is not the address of a Slipway master: it returned HTTP status %d", url, code)
}

// rejected is an error with a master's reason for a rejection. It matches ErrRejected.
type rejected string

func (r rejected) Error() string        { return string(r) }
func (r rejected) Is(target error) bool { return target == ErrRejected }

// checkClock returns an error if the difference between this host's clock and the master's clock
// exceeds maxClockDifference. date is the Date header of the master's response.
func checkClock(date string) error {
	master, err := http.ParseTime(date)
	if err != nil {
		return nil // the server does not send its time
	}
	if difference := time.Since(master); difference.Abs() > maxClockDifference {
		return fmt.Errorf("the clock of this machine differs from the master's clock by %s; synchronize the clocks, because certificates are valid only from and until certain times", difference.Abs().Round(time.Second))
	}
	return nil
}
