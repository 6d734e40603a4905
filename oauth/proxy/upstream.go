package proxy

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

// addUpstream adds an application.
func (s *Settings) addUpstream(text string) error {
	upstream, err := url.Parse(text)
	if err != nil {
		return err
	}
	if upstream.Host == "" || upstream.Scheme != "http" && upstream.Scheme != "https" {
		return errors.New("must be a URL with http or https")
	}
	if upstream.RawQuery != "" || upstream.Fragment != "" || upstream.User != nil {
		return errors.New("must be a URL without user, query and fragment")
	}
	upstream.Path = cmp.Or(upstream.Path, "/")
	if slices.ContainsFunc(s.Upstreams, func(other *url.URL) bool { return other.Path == upstream.Path }) {
		return fmt.Errorf("another upstream has the path %q; give each upstream its own path", upstream.Path)
	}
	s.Upstreams = append(s.Upstreams, upstream)
	slices.SortStableFunc(s.Upstreams, func(a, b *url.URL) int { return cmp.Compare(len(b.Path), len(a.Path)) })
	return nil
}

// checkUpstreams rejects applications that no request can reach.
func (s *Settings) checkUpstreams() error {
	if len(s.Upstreams) == 0 {
		return errors.New("--upstream is missing")
	}
	for _, upstream := range s.Upstreams {
		// The image does not contain a CA bundle, so --upstream-ca is required.
		if upstream.Scheme == "https" && len(s.UpstreamCAs) == 0 {
			return fmt.Errorf("--upstream %q needs --upstream-ca", upstream)
		}
	}
	return nil
}

// upstream returns the URL of the application that serves a path, or nil.
func (s *Settings) upstream(path string) *url.URL {
	for _, upstream := range s.Upstreams {
		if path == upstream.Path || strings.HasSuffix(upstream.Path, "/") && strings.HasPrefix(path, upstream.Path) {
			return &url.URL{Scheme: upstream.Scheme, Host: upstream.Host}
		}
	}
	return nil
}

// transport returns the transport for requests to applications.
func (s *Settings) transport() (http.RoundTripper, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if len(s.UpstreamCAs) == 0 {
		return transport, nil
	}
	pool, err := remote.Authorities(s.UpstreamCAs...)
	if err != nil {
		return nil, fmt.Errorf("connect to upstream: %w", err)
	}
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	return transport, nil
}
