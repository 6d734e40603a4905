package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd/api"
)

// challengingClient is the OAuth client for programs that respond to WWW-Authenticate challenges.
const challengingClient = "openshift-challenging-client"

// metadataPath is the path of a server's OAuth metadata.
const metadataPath = "/.well-known/oauth-authorization-server"

// errCredentials reports a wrong user name or password, in OpenShift 3's words.
var errCredentials = errors.New("Login failed (401 Unauthorized)\nVerify you have provided correct credentials.")

// tokenRequest requests a token through the authorization code grant with PKCE, without a browser.
type tokenRequest struct {
	client                   *http.Client
	issuer, authorize, token string
	verifier                 string
	challenges               challenges
}

// requestToken requests an access token from the cluster's OAuth server. It responds to the
// server's challenges.
func requestToken(ctx context.Context, cluster *api.Cluster, challenges challenges) (string, error) {
	config, err := connection(cluster, &api.AuthInfo{})
	if err != nil {
		return "", err
	}
	transport, err := rest.TransportFor(config)
	if err != nil {
		return "", err
	}
	r := &tokenRequest{
		client: &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
		// The verifier must have at least 43 characters, which two random strings exceed.
		verifier: rand.Text() + rand.Text(), challenges: challenges,
	}
	if err := r.discover(ctx, cluster.Server); err != nil {
		return "", err
	}
	code, err := r.requestCode(ctx)
	if err != nil {
		return "", err
	}
	return r.exchange(ctx, code)
}

// maxBody is the maximum size of a response, in bytes.
const maxBody = 1 << 20

// do sends a request and returns the response and its body.
func (r *tokenRequest) do(request *http.Request) (*http.Response, []byte, error) {
	response, err := r.client.Do(request)
	if err != nil {
		return nil, nil, err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	return response, body, err
}

// discover sets the endpoints from the server's OAuth metadata.
func (r *tokenRequest) discover(ctx context.Context, server string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server+metadataPath, nil)
	if err != nil {
		return err
	}
	response, body, err := r.do(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the server %s does not support OAuth logins (%s); log in with a token or a client certificate", server, response.Status)
	}
	var metadata struct {
		Issuer    string `json:"issuer"`
		Authorize string `json:"authorization_endpoint"`
		Token     string `json:"token_endpoint"`
	}
	if err := json.Unmarshal(body, &metadata); err != nil || metadata.Authorize == "" || metadata.Token == "" {
		return fmt.Errorf("decode OAuth metadata of %s: it contains no endpoints", server)
	}
	r.issuer, r.authorize, r.token = strings.TrimRight(metadata.Issuer, "/"), metadata.Authorize, metadata.Token
	return nil
}

// maxSteps is the maximum number of requests in a login, including redirects and challenges.
const maxSteps = 10

// requestCode requests an authorization code, as described in OpenShift 3.9's architecture guide
// (4.1.4.6). It responds to challenges. It follows redirects until it is redirected to the client's
// own address, with the code or an error.
func (r *tokenRequest) requestCode(ctx context.Context) (string, error) {
	hash := sha256.Sum256([]byte(r.verifier))
	redirect := r.issuer + "/oauth/token/implicit"
	address := r.authorize + "?" + url.Values{
		"client_id": {challengingClient}, "response_type": {"code"}, "redirect_uri": {redirect},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(hash[:])}, "code_challenge_method": {"S256"},
	}.Encode()
	c := r.challenges
	for range maxSteps {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return "", err
		}
		request.Header.Set("X-CSRF-Token", "1")
		if c.authorization != "" && sameHost(address, c.address) {
			request.Header.Set("Authorization", c.authorization)
		}
		response, body, err := r.do(request)
		if err != nil {
			return "", err
		}
		switch response.StatusCode {
		case http.StatusFound:
			next, err := response.Location()
			if err != nil {
				return "", errors.New("the OAuth server sent a redirect without a valid address")
			}
			if strings.HasPrefix(next.String(), redirect+"?") {
				return codeOf(next.Query())
			}
			address = next.String()
		case http.StatusUnauthorized:
			if err := c.respond(address, response, string(body)); err != nil {
				return "", err
			}
		default:
			return "", fmt.Errorf("the OAuth server responded with %s: %s", response.Status, strings.TrimSpace(string(body)))
		}
	}
	return "", fmt.Errorf("the OAuth server redirected more than %d times", maxSteps)
}

// challenges responds to a login's challenges.
type challenges struct {
	// credentials returns the user name and password for a realm. If preferPassword is set, the
	// client sends the password to a server that accepts both a Kerberos ticket and a password.
	credentials    func(realm string) (user, password string, err error)
	preferPassword bool
	// address is the address that sent the challenge. authorization is the Authorization header for
	// the host in address.
	address, authorization string
	// sentTicket and sentPassword mean that a ticket or a password has already been sent.
	sentTicket, sentPassword bool
}

// respond determines the response to a challenge.
func (c *challenges) respond(address string, response *http.Response, body string) error {
	realm, acceptsPassword := basicRealm(response)
	var problem error
	if acceptsKerberos(response) && !c.sentTicket && !(acceptsPassword && c.preferPassword) {
		c.sentTicket = true
		if c.authorization, problem = kerberosTicket(address); problem == nil {
			c.address = address
			return nil
		}
	}
	switch {
	case acceptsPassword && !c.sentPassword:
		user, password, err := c.credentials(realm)
		if err != nil {
			return err
		}
		c.sentPassword = true
		c.address, c.authorization = address, "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		return nil
	case problem != nil:
		return fmt.Errorf("Login failed (401 Unauthorized)\n%w", problem)
	case acceptsPassword || c.sentTicket:
		return errCredentials
	}
	return fmt.Errorf("Login failed (401 Unauthorized)\n%s", strings.TrimSpace(body))
}

// sameHost reports whether two URLs have the same scheme and host. The client sends a password or
// ticket only to the host that requested it.
func sameHost(a, b string) bool {
	first, err := url.Parse(a)
	if err != nil {
		return false
	}
	second, err := url.Parse(b)
	return err == nil && first.Scheme == second.Scheme && first.Host == second.Host
}

// realmText matches a Basic challenge. Its group captures the realm.
var realmText = regexp.MustCompile(`(?i)^Basic\s+realm="([^"]*)"`)

func basicRealm(response *http.Response) (realm string, challenged bool) {
	for _, challenge := range response.Header.Values("WWW-Authenticate") {
		if matches := realmText.FindStringSubmatch(challenge); matches != nil {
			return matches[1], true
		}
	}
	return "", false
}

// codeOf returns the code or the error in the redirect's query.
func codeOf(query url.Values) (string, error) {
	if query.Get("error") != "" {
		return "", fmt.Errorf("Login failed (%s)\n%s", query.Get("error"), query.Get("error_description"))
	}
	if query.Get("code") == "" {
		return "", errors.New("the OAuth server sent no code")
	}
	return query.Get("code"), nil
}

// exchange exchanges the code for a token.
func (r *tokenRequest) exchange(ctx context.Context, code string) (string, error) {
	form := url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {r.issuer + "/oauth/token/implicit"}, "code_verifier": {r.verifier},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, r.token, strings.NewReader(form.Encode()))
	if err != nil {
		return "", err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.SetBasicAuth(challengingClient, "")
	response, body, err := r.do(request)
	if err != nil {
		return "", err
	}
	var resp struct {
		AccessToken string `json:"access_token"`
		Error       string `json:"error"`
		Description string `json:"error_description"`
	}
	if err := json.Unmarshal(body, &resp); err != nil || resp.AccessToken == "" {
		return "", fmt.Errorf("the OAuth server returned no token (%s): %s %s", response.Status, resp.Error, resp.Description)
	}
	return resp.AccessToken, nil
}
