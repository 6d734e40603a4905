package kit

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"time"
)

// visitTimeout is the timeout for a request to a router. It is long because the router holds a
// request to an idle service until the service has pods.
const visitTimeout = time.Minute

// Visitor returns an HTTP client that sends each request to the router on this host, regardless of
// the host name in the URL.
func (c *Cluster) Visitor() *http.Client {
	return &http.Client{Timeout: visitTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return c.Dial(ctx, "tcp", "127.0.0.1:80") },
	}}
}

// Visit requests a route's page from the router on this host. It checks the page like Fetch.
func (c *Cluster) Visit(ctx context.Context, url, want string) (page string, err error) {
	return Fetch(ctx, c.Visitor(), url, want)
}

// WaitVisit waits until the router on this host serves a route's page that contains want.
func (c *Cluster) WaitVisit(url, want string) {
	c.t.Helper()
	c.WaitFor(fmt.Sprintf("page of %s with %q", url, want), func(ctx context.Context) error {
		_, err := c.Visit(ctx, url, want)
		return err
	})
}

// Browser returns an HTTP client that stores cookies, trusts the cluster, and follows redirects. It
// runs no scripts.
func (c *Cluster) Browser(certificates ...tls.Certificate) *http.Client {
	c.t.Helper()
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(c.Config.CAData)
	jar, err := cookiejar.New(nil)
	if err != nil {
		c.t.Fatal(err)
	}
	transport := &http.Transport{DialContext: c.Dial, TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: certificates}}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: jar}
}

// Fetch requests a page and returns its text. It returns an error if the status is not 200, or if
// the page does not contain want.
func Fetch(ctx context.Context, client *http.Client, url, want string) (page string, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	response, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != http.StatusOK || !strings.Contains(string(body), want)) {
		err = fmt.Errorf("get %s: %s, page %.200q", url, response.Status, body)
	}
	return string(body), err
}
