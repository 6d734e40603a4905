package proxy

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"
)

// Settings are the flags of the proxy.
type Settings struct {
	// HTTPS and HTTP are the addresses to listen on. HTTP is used without HTTPS only.
	HTTPS, HTTP string
	// Certificate and Key are files.
	Certificate, Key string
	// Upstream is the application.
	Upstream *url.URL
	// ClientID and ClientSecret identify the OAuth client.
	ClientID, ClientSecret string
	// Scope is what a user is asked for.
	Scope string
	// RedirectURL is where the OAuth server sends the browser back to. Without a host, it is that of
	// the request.
	RedirectURL *url.URL
	// CookieName is the name of the session's cookie, CookieSecret the secret that seals it, and
	// CookieExpire how long it is valid.
	CookieName, CookieSecret string
	CookieExpire             time.Duration
	// PassToken passes the user's token to the application.
	PassToken bool
	// Open are the paths that need no login.
	Open []*regexp.Regexp
	// Review contains the resource attributes of a SelfSubjectAccessReview, or is empty. Only users
	// that it allows reach the application.
	Review json.RawMessage
	// API is the URL of the API server, CA the file of its authority.
	API, CA string
}

// accountFolder contains the credentials of the pod's service account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

// callbackPath is where the OAuth server sends the browser back to.
const callbackPath = "/oauth/callback"

// Parse reads the flags. All problems are reported together. Help and the list of flags go to out.
func Parse(args []string, out io.Writer) (s Settings, err error) {
	flags := flag.NewFlagSet("oauth-proxy", flag.ContinueOnError)
	flags.SetOutput(out)
	var problems []error
	check := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	flags.StringVar(&s.HTTPS, "https-address", ":8443", "`address` to serve HTTPS on; empty for HTTP")
	flags.StringVar(&s.HTTP, "http-address", "127.0.0.1:4180", "`address` to serve HTTP on, if --https-address is empty")
	flags.StringVar(&s.Certificate, "tls-cert", "", "`file` with the certificate")
	flags.StringVar(&s.Key, "tls-key", "", "`file` with the key of the certificate")
	provider := flags.String("provider", "openshift", "kind of the OAuth server: openshift")
	upstream := flags.String("upstream", "", "`URL` of the application")
	account := flags.String("openshift-service-account", "", "`name` of the pod's service account, which is the OAuth client")
	flags.StringVar(&s.ClientID, "client-id", "", "`ID` of the OAuth client, without a service account")
	flags.StringVar(&s.ClientSecret, "client-secret", "", "secret of the OAuth client")
	secretFile := flags.String("client-secret-file", "", "`file` with the secret of the OAuth client")
	flags.StringVar(&s.Scope, "scope", "user:info user:check-access", "what a user is asked for")
	redirect := flags.String("redirect-url", "", "`URL` of "+callbackPath+"; the default is that of the request")
	flags.StringVar(&s.CookieName, "cookie-name", "_oauth_proxy", "name of the cookie")
	flags.StringVar(&s.CookieSecret, "cookie-secret", "", "secret that seals the cookie")
	cookieFile := flags.String("cookie-secret-file", "", "`file` with the secret that seals the cookie")
	flags.DurationVar(&s.CookieExpire, "cookie-expire", 7*24*time.Hour, "how long a login is valid")
	flags.BoolVar(&s.PassToken, "pass-access-token", false, "pass the user's token as X-Forwarded-Access-Token")
	review := flags.String("openshift-sar", "", "`JSON` of the resource attributes that a user needs access to")
	flags.StringVar(&s.API, "openshift-api", "https://kubernetes.default.svc", "`URL` of the API server")
	flags.StringVar(&s.CA, "openshift-ca", accountFolder+"ca.crt", "`file` with the authority of the API server")
	flags.Func("skip-auth-regex", "`expression` of paths that need no login (repeatable)", func(text string) error {
		if text == "" {
			return errors.New("an empty expression would open every path")
		}
		expression, err := regexp.Compile(text)
		s.Open = append(s.Open, expression)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return s, err
	}
	if flags.NArg() > 0 {
		check(fmt.Errorf("unexpected argument %q; flags begin with -", flags.Arg(0)))
	}
	if *provider != "openshift" {
		check(fmt.Errorf("--provider is %q, must be openshift", *provider))
	}
	s.Upstream, err = url.Parse(*upstream)
	if err != nil || s.Upstream.Host == "" || s.Upstream.Scheme != "http" && s.Upstream.Scheme != "https" {
		check(fmt.Errorf("--upstream is %q, must be a URL with http or https", *upstream))
	}
	s.RedirectURL, err = url.Parse(*redirect)
	check(err)
	if s.HTTPS != "" && (s.Certificate == "" || s.Key == "") {
		check(errors.New("--https-address needs --tls-cert and --tls-key"))
	}
	if *review != "" {
		s.Review = json.RawMessage(*review)
		if !json.Valid(s.Review) {
			check(fmt.Errorf("--openshift-sar is %q, must be a JSON object", *review))
		}
	}
	check(s.readSecrets(*account, *secretFile, *cookieFile))
	return s, errors.Join(problems...)
}

// readSecrets sets the OAuth client, and the secret of cookies.
func (s *Settings) readSecrets(account, secretFile, cookieFile string) error {
	var errs []error
	read := func(into *string, file string) {
		text, err := os.ReadFile(file)
		errs = append(errs, err)
		*into = strings.TrimSpace(string(text))
	}
	if account != "" {
		var project string
		read(&project, accountFolder+"namespace")
		s.ClientID = "system:serviceaccount:" + project + ":" + account
		if secretFile == "" && s.ClientSecret == "" {
			secretFile = accountFolder + "token"
		}
	}
	if secretFile != "" {
		read(&s.ClientSecret, secretFile)
	}
	if cookieFile != "" {
		read(&s.CookieSecret, cookieFile)
	}
	if s.ClientID == "" || s.ClientSecret == "" {
		errs = append(errs, errors.New("--openshift-service-account, or --client-id and --client-secret, is missing"))
	}
	if s.CookieSecret == "" {
		errs = append(errs, errors.New("--cookie-secret is missing"))
	}
	return errors.Join(errs...)
}

// redirectURL returns the address of callbackPath, for a request.
func (s *Settings) redirectURL(host string) string {
	target := url.URL{Scheme: "https", Host: host, Path: callbackPath}
	if s.RedirectURL.Host != "" {
		target = *s.RedirectURL
	}
	if name, port, err := net.SplitHostPort(target.Host); err == nil && port == "443" {
		target.Host = name
	}
	return target.String()
}
