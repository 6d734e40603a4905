package proxy

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/oauth/idp/remote"
)

const (
	// requestTimeout is the timeout for a request to the API server.
	requestTimeout = 30 * time.Second
	// maxAttempts is the maximum number of times that get sends a request. retryInterval is the
	// time between attempts.
	maxAttempts   = 5
	retryInterval = time.Second
	// maxResponse is the maximum length of a response, in bytes.
	maxResponse = 1 << 20
)

// api is a client of the API server, which is also the OAuth server.
type api struct {
	url    string
	client *http.Client
}

// connect creates the client. It does not send requests.
func connect(s Settings) (*api, error) {
	pool, err := remote.Authorities(s.CAs...)
	if err != nil {
		return nil, fmt.Errorf("connect to API server: %w", err)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	return &api{strings.TrimSuffix(s.API, "/"), &http.Client{Transport: transport, Timeout: requestTimeout}}, nil
}

// get sends a GET request for a path and decodes the response. It sends the token unless the token
// is empty. It retries while the API server is starting or unreachable.
func (a *api) get(ctx context.Context, path, token string, into any) error {
	for attempt := 1; ; attempt++ {
		err := a.call(ctx, http.MethodGet, path, token, nil, into)
		if !errors.Is(err, errTemporary) || attempt == maxAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryInterval):
		}
	}
}

// errTemporary marks errors that a retry can resolve.
var errTemporary = errors.New("the API server is not available")

// call sends a request and decodes the response. It sends the token unless the token is empty. It
// encodes a form as form data, and any other body as JSON.
func (a *api) call(ctx context.Context, method, path, token string, body, into any) error {
	var content []byte
	kind := "application/json"
	switch body := body.(type) {
	case nil:
	case url.Values:
		content, kind = []byte(body.Encode()), "application/x-www-form-urlencoded"
	default:
		var err error
		if content, err = json.Marshal(body); err != nil {
			return fmt.Errorf("encode request to %s: %w", path, err)
		}
	}
	request, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(content))
	if err != nil {
		return fmt.Errorf("create request to %s: %w", path, err)
	}
	request.Header.Set("Accept", "application/json")
	if content != nil {
		request.Header.Set("Content-Type", kind)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := a.client.Do(request)
	if err != nil {
		return fmt.Errorf("%w: %w", errTemporary, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxResponse))
	switch {
	case err == nil && (response.StatusCode/100 == 5 || response.StatusCode == http.StatusTooManyRequests):
		err = fmt.Errorf("%w: the response is %s", errTemporary, response.Status)
	case err == nil && response.StatusCode/100 != 2:
		err = fmt.Errorf("the response is %s", response.Status)
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("request %s from the API server: %w", path, err)
	}
	return nil
}

// authorizeURL returns the OAuth server's public URL for browsers.
func (a *api) authorizeURL(ctx context.Context) (*url.URL, error) {
	var metadata struct {
		Endpoint string `json:"authorization_endpoint"`
	}
	if err := a.get(ctx, "/.well-known/oauth-authorization-server", "", &metadata); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(metadata.Endpoint)
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("the API server returns %q as the address of the OAuth server; it must be an absolute URL", metadata.Endpoint)
	}
	return endpoint, nil
}

// token exchanges a code for a token.
func (a *api) token(ctx context.Context, s *Settings, code, redirect, verifier string) (string, error) {
	secret, err := s.clientSecret()
	if err != nil {
		return "", err
	}
	var issued struct {
		Token string `json:"access_token"`
	}
	err = a.call(ctx, http.MethodPost, "/oauth/token", "", url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier},
		"client_id": {s.ClientID}, "client_secret": {secret},
	}, &issued)
	if err == nil && issued.Token == "" {
		err = fmt.Errorf("the OAuth server issued no token")
	}
	return issued.Token, err
}

// user returns the name of a token's owner.
func (a *api) user(ctx context.Context, token string) (string, error) {
	var user struct {
		Metadata struct{ Name string }
	}
	err := a.get(ctx, "/apis/user.openshift.io/v1/users/~", token, &user)
	return user.Metadata.Name, err
}

// allows reports whether a token's owner has the permissions in all reviews.
func (a *api) allows(ctx context.Context, token string, reviews []Review) (bool, error) {
	for _, review := range reviews {
		var result struct{ Allowed bool }
		err := a.call(ctx, http.MethodPost, "/apis/authorization.openshift.io/v1/subjectaccessreviews", token, review, &result)
		if err != nil || !result.Allowed {
			return false, err
		}
	}
	return true, nil
}
