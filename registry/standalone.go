package registry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/api/errcode"
	v2 "github.com/distribution/distribution/v3/registry/api/v2"
	"github.com/distribution/distribution/v3/registry/auth"
	// Register the `htpasswd` authentication.
	_ "github.com/distribution/distribution/v3/registry/auth/htpasswd"
	// Register the `token` authentication.
	_ "github.com/distribution/distribution/v3/registry/auth/token"
	"github.com/distribution/reference"

	"github.com/slipway-platform/slipway/internal/keypair"
)

// Standalone is a registry without a cluster. Repositories can have any name, and users come from a
// file or a token server. Standalone uses distribution's configuration, and adds support for
// referrers and for additional digest algorithms.
//
// Source: OpenShift Container Platform 3.9 Architecture, "stand-alone registry".
type Standalone struct {
	// Settings is the result of ReadConfiguration.
	Settings *configuration.Configuration
}

// Name returns the name of the component.
func (*Standalone) Name() string { return "registry" }

// Run serves requests until ctx is done.
func (s *Standalone) Run(ctx context.Context, ready func()) error {
	if s.Settings.HTTP.Addr == "" {
		return errors.New("http.addr is missing; set the address to listen on, such as :5000")
	}
	secured, err := s.tls()
	if err != nil {
		return err
	}
	handler, err := s.open(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	defer func() { _ = handler.shutdown() }()
	if reason := risk(s.Settings); reason != "" {
		slog.Warn("registry is not protected", "component", s.Name(), "address", s.Settings.HTTP.Addr, "error", reason)
	}
	network := s.Settings.HTTP.Net
	if network == "" {
		network = "tcp"
	}
	listener, err := net.Listen(network, s.Settings.HTTP.Addr)
	if err != nil {
		return fmt.Errorf("listen for registry (http.addr): %w", err)
	}
	front := frontOf(ctx, handler)
	timeout := max(s.Settings.HTTP.DrainTimeout, 5*time.Second)
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(stopped); shutDown(front, timeout) })
	ready()
	if front.TLSConfig = secured; secured != nil {
		err = front.ServeTLS(listener, "", "")
	} else {
		err = front.Serve(listener)
	}
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return fmt.Errorf("serve registry: %w", err)
	}
	<-stopped
	return nil
}

// risk returns a warning if the configuration is insecure, or "".
func risk(settings *configuration.Configuration) string {
	kind, config := settings.Auth.Type(), settings.HTTP.TLS
	certified := len(config.ClientCAs) > 0 && config.ClientAuth != configuration.ClientAuthVerifyClientCertIfGiven
	switch {
	case (kind == "" || kind == "none") && !certified:
		return "every client can push and pull, because no users are configured; set auth.htpasswd or auth.token"
	case config.Certificate == "" && settings.HTTP.Net != "unix":
		return "passwords and images are sent without encryption, unless a proxy terminates TLS: set http.tls"
	}
	return ""
}

// tls returns the TLS configuration, or nil if no certificate is configured.
func (s *Standalone) tls() (*tls.Config, error) {
	resp := s.Settings.HTTP.TLS
	if resp.Certificate == "" {
		return nil, nil
	}
	read := keypair.Loader(resp.Certificate, resp.Key)
	if _, err := read(nil); err != nil {
		return nil, err
	}
	secured := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: read}
	if resp.MinimumTLS == "tls1.3" {
		secured.MinVersion = tls.VersionTLS13
	}
	if len(resp.ClientCAs) == 0 {
		return secured, nil
	}
	secured.ClientAuth, secured.ClientCAs = tls.RequireAndVerifyClientCert, x509.NewCertPool()
	if resp.ClientAuth == configuration.ClientAuthVerifyClientCertIfGiven {
		secured.ClientAuth = tls.VerifyClientCertIfGiven
	}
	for _, file := range resp.ClientCAs {
		authority, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read http.tls.clientcas: %w", err)
		}
		if !secured.ClientCAs.AppendCertsFromPEM(authority) {
			return nil, fmt.Errorf("read http.tls.clientcas: %q contains no certificate", file)
		}
	}
	return secured, nil
}

// standalone is the HTTP handler of a stand-alone registry.
type standalone struct {
	*store
	access auth.AccessController // nil if everything is allowed
}

func (s *Standalone) open(ctx context.Context) (*standalone, error) {
	handler := &standalone{}
	var err error
	if kind := s.Settings.Auth.Type(); kind != "" && kind != "none" {
		if handler.access, err = auth.GetAccessController(kind, s.Settings.Auth.Parameters()); err != nil {
			return nil, fmt.Errorf("read auth.%s: %w", kind, err)
		}
	}
	handler.store, err = openStore(ctx, s.Settings)
	return handler, err
}

// ServeHTTP serves requests that distribution does not support, and forwards all other requests to
// distribution, which checks their permissions.
func (s *standalone) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/" || r.URL.Path == "/healthz" {
		return
	}
	if repository, subject, ok := referrersPath(r.URL.Path); ok {
		if s.allowed(w, r, repository, "pull") {
			s.serveReferrers(w, r, repository, subject, nil)
		}
		return
	}
	t, name := routeOf(r)
	switch {
	case t.route == v2.RouteNameManifest && r.Method == http.MethodPut:
		if !s.allowed(w, r, name, "pull", "push") {
			return
		}
		manifest, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxManifest))
		if err != nil {
			serveError(w, errcode.ErrorCodeManifestInvalid.WithMessage("read manifest: "+err.Error()))
			return
		}
		s.putManifest(w, r, name, t.reference, manifest)
	case t.route == v2.RouteNameManifest && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		s.readManifest(w, r)
	case t.route == v2.RouteNameBlobUpload && !mountable(r.URL.Query().Get("mount")):
		query := r.URL.Query()
		query.Del("mount")
		r.URL.RawQuery = query.Encode()
		s.upload(w, r, noLimit)
	case t.route == v2.RouteNameBlobUpload, t.route == v2.RouteNameBlobUploadChunk:
		s.upload(w, r, noLimit)
	case t.route == v2.RouteNameBlob:
		s.serveBlob(w, r)
	default:
		s.Handler.ServeHTTP(w, r)
	}
}

// allowed reports whether the caller has permissions on a repository. If not, allowed sends the
// error response.
func (s *standalone) allowed(w http.ResponseWriter, r *http.Request, repository string,
	actions ...string) bool {
	if _, err := reference.WithName(repository); err != nil {
		serveError(w, errcode.ErrorCodeNameInvalid.WithMessage(err.Error()))
		return false
	}
	if s.access == nil {
		return true
	}
	var accesses []auth.Access
	for _, action := range actions {
		accesses = append(accesses, auth.Access{Resource: auth.Resource{Type: "repository", Name: repository}, Action: action})
	}
	_, err := s.access.Authorized(r, accesses...)
	if err == nil {
		return true
	}
	var challenge auth.Challenge
	if !errors.As(err, &challenge) {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage("check credentials: the authentication service is not available"))
		return false
	}
	challenge.SetHeaders(r, w)
	serveError(w, errcode.ErrorCodeUnauthorized.WithMessage("authentication required"))
	return false
}
