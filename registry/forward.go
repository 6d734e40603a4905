package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"os"
	"time"

	"github.com/distribution/distribution/v3/registry/api/errcode"
)

// forwardTimeout is the timeout for connecting to the registry.
const forwardTimeout = 5 * time.Second

// Forward is the component of a master that does not run the registry. It forwards requests to the
// master that runs the registry.
type Forward struct {
	// Address is the host:port to listen on. CertFile and KeyFile contain the serving certificate.
	Address, CertFile, KeyFile string
	// Host is the host:port in the registry's image names. CAFile contains the CA of its certificate.
	Host, CAFile string
	// Target returns the host:port of the master that runs the registry.
	Target func() (string, error)
}

// Name returns the component's name, which is the same as the registry's.
func (*Forward) Name() string { return "registry" }

// Run forwards requests until ctx is done.
func (f *Forward) Run(ctx context.Context, ready func()) error {
	authorities, err := os.ReadFile(f.CAFile)
	if err != nil {
		return fmt.Errorf("read registry CA: %w", err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authorities)
	listener, err := listen(f.Address)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		DialContext: f.dial, TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}, IdleConnTimeout: time.Minute,
	}
	defer transport.CloseIdleConnections()
	return serve(ctx, listener, f.CertFile, f.KeyFile, &httputil.ReverseProxy{
		// The registry's responses contain the request's Host header, so Rewrite does not change
		// it.
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "https", f.Host },
		Transport:    transport,
		ErrorLog:     log.New(discard{}, "", 0), // the client receives the error
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { serveError(w, unavailable(err)) },
	}, ready)
}

// dial connects to the master that runs the registry. It ignores the address argument, which
// contains the registry's name.
func (f *Forward) dial(ctx context.Context, network, _ string) (net.Conn, error) {
	target, err := f.Target()
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{Timeout: forwardTimeout}).DialContext(ctx, network, target)
}

func unavailable(err error) error {
	return errcode.ErrorCodeUnavailable.WithMessage(fmt.Sprintf("the master that runs the registry does not respond: %v", err))
}
