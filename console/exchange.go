package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/client-go/rest"
)

// maxTokenResponse is the maximum size of a token endpoint response, in bytes.
const maxTokenResponse = 64 << 10

// tokenClient exchanges codes for tokens with the OAuth server in the same process.
type tokenClient struct {
	url  string
	http *http.Client
}

// loopback returns a client for the server in config. The client does not send config's
// credentials.
func loopback(config *rest.Config) (*tokenClient, error) {
	client, err := rest.HTTPClientFor(rest.AnonymousClientConfig(config))
	if err != nil {
		return nil, err
	}
	return &tokenClient{config.Host, client}, nil
}

// issued is a token endpoint response (RFC 6749, section 5).
type issued struct {
	Secret    string `json:"access_token"`
	ExpiresIn int64  `json:"expires_in"`
	Error     string `json:"error"`
}

// redeem sends a form with a code to the token endpoint and returns the issued token. It returns an
// error if the response contains no token.
func (c *tokenClient) redeem(ctx context.Context, path string, form url.Values) (issued, error) {
	var token issued
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return token, fmt.Errorf("exchange code: %w", err)
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.http.Do(request)
	if err != nil {
		return token, fmt.Errorf("exchange code: %w", err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxTokenResponse)).Decode(&token); err != nil {
		return token, fmt.Errorf("exchange code: %s: the response is not JSON", resp.Status)
	}
	if token.Secret == "" {
		return token, fmt.Errorf("exchange code: %s: %q", resp.Status, token.Error)
	}
	return token, nil
}
