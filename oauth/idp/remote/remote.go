// Package remote provides HTTP clients for identity providers, with a configured CA bundle, a
// timeout and a limited response size. Package proxy also uses it to read CA bundles.
package remote

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// timeout is the timeout for a request. It is short because a user waits for the response.
const timeout = 15 * time.Second

// maxAnswer is the maximum length of a response body, in bytes.
const maxAnswer = 1 << 20

// TLS configures the CA bundle and the client certificate for a provider. The zero value selects
// the machine's CA certificates and no client certificate.
type TLS struct {
	CAFile            string
	CertFile, KeyFile string
}

// Client returns an HTTP client for one server. It does not follow redirects, because only the
// configured server may confirm a password.
func Client(settings TLS) (*http.Client, error) {
	config, err := Config(settings)
	if err != nil {
		return nil, err
	}
	return &http.Client{
		Timeout:       timeout,
		Transport:     limited{&http.Transport{Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 4, IdleConnTimeout: time.Minute}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}

// limited truncates response bodies to one byte more than maxAnswer. The additional byte allows
// JSON to detect a longer body.
type limited struct{ http.RoundTripper }

// RoundTrip sends a request.
func (l limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswer+1)
	}
	return response, err
}

// Config returns the TLS configuration for a client.
func Config(settings TLS) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if settings.CAFile != "" {
		pool, err := Authorities(settings.CAFile)
		if err != nil {
			return nil, err
		}
		config.RootCAs = pool
	}
	if settings.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(settings.CertFile, settings.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("read client certificate %q: %w", settings.CertFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// Authorities returns the certificates in PEM files. It returns an error if a file contains no
// certificates.
func Authorities(files ...string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		if !pool.AppendCertsFromPEM(content) {
			return nil, fmt.Errorf("read certificate authority %q: it contains no certificate", file)
		}
	}
	return pool, nil
}

// JSON sends a request and decodes the JSON response into result, unless result is nil. For a
// status other than 200 and 201, JSON ignores the body and returns no error. Errors never contain
// the request or the response.
func JSON(ctx context.Context, client *http.Client, request *http.Request,
	result any) (*http.Response, error) {
	response, err := client.Do(request.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("call identity provider: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read response of %s: %w", request.URL.Host, err)
	}
	if len(content) > maxAnswer {
		return nil, fmt.Errorf("read response of %s: it has more than %d bytes", request.URL.Host, maxAnswer)
	}
	if response.StatusCode != http.StatusOK && response.StatusCode != http.StatusCreated {
		return response, nil
	}
	if result == nil {
		return response, nil
	}
	if err := json.Unmarshal(content, result); err != nil {
		return nil, fmt.Errorf("parse response of %s: it is not JSON in the expected format", request.URL.Host)
	}
	return response, nil
}
