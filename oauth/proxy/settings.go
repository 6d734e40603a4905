package proxy

import (
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

// Settings contains the values of the proxy's flags.
type Settings struct {
	// HTTPS and HTTP are the addresses to listen on. HTTP is used only if HTTPS is empty.
	HTTPS, HTTP string
	// Certificate and Key are paths to files.
	Certificate, Key string
	// Upstreams contains the URLs of the applications, longest path first. If a URL's path ends
	// with a slash, the application serves all paths that begin with the path.
	Upstreams []*url.URL
	// UpstreamCAs contains paths to the CA bundles for applications with HTTPS.
	UpstreamCAs []string
	// ClientID and ClientSecret identify the OAuth client. ClientSecretFile takes precedence over
	// ClientSecret. The content of the file can change while the proxy is running.
	ClientID, ClientSecret, ClientSecretFile string
	// Scope is the scope that the proxy requests from the user.
	Scope string
	// RedirectURL is the URL that the OAuth server redirects the browser to. If it has no host, the
	// request's host applies.
	RedirectURL *url.URL
	// CookieName is the name of the session cookie. CookieSecret is the secret that seals the
	// cookie. CookieExpire is the time for which the cookie is valid.
	CookieName, CookieSecret string
	CookieExpire             time.Duration
	// PassToken makes the proxy pass the user's token to the application.
	PassToken bool
	// Open matches the paths that can be accessed without a login.
	Open []*regexp.Regexp
	// Reviews lists the reviews that determine which users can access the application. All of the
	// reviews must allow the user.
	Reviews []Review
	// API is the API server's URL. CAs contains paths to its CA bundles.
	API string
	CAs []string
}

// accountFolder is the folder with the credentials of the pod's service account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount/"

// defaultCA is the path to the API server's CA bundle.
const defaultCA = accountFolder + "ca.crt"

// callbackPath is the path that the OAuth server redirects the browser to.
const callbackPath = "/oauth/callback"

// Parse parses the flags. Its error contains the problems of all flags. Parse writes help and the
// list of flags to out.
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
	flags.StringVar(&s.Certificate, "tls-cert", "", "`file` with the certificate for HTTPS")
	flags.StringVar(&s.Key, "tls-key", "", "`file` with the key of the certificate")
	provider := flags.String("provider", "openshift", "kind of the OAuth server; must be openshift")
	flags.Func("upstream", "`URL` of the application that serves the URL's path, or the paths below it if it ends with / (repeatable)", s.addUpstream)
	flags.Func("upstream-ca", "`file` with a certificate authority for upstreams with HTTPS (repeatable)", appendTo(&s.UpstreamCAs))
	account := flags.String("openshift-service-account", "", "`name` of the pod's service account, which is the OAuth client")
	flags.StringVar(&s.ClientID, "client-id", "", "`ID` of the OAuth client, if it is not a service account")
	flags.StringVar(&s.ClientSecret, "client-secret", "", "secret of the OAuth client")
	flags.StringVar(&s.ClientSecretFile, "client-secret-file", "", "`file` with the secret of the OAuth client")
	flags.StringVar(&s.Scope, "scope", "user:info user:check-access", "scopes that the proxy requests")
	redirect := flags.String("redirect-url", "", "`URL` of "+callbackPath+"; by default, the proxy derives it from the request")
	flags.StringVar(&s.CookieName, "cookie-name", "_oauth_proxy", "name of the cookie")
	flags.StringVar(&s.CookieSecret, "cookie-secret", "", "secret that seals the cookie")
	cookieFile := flags.String("cookie-secret-file", "", "`file` with the secret that seals the cookie")
	flags.DurationVar(&s.CookieExpire, "cookie-expire", 7*24*time.Hour, "how long a login is valid")
	flags.BoolVar(&s.PassToken, "pass-access-token", false, "pass the user's token as X-Forwarded-Access-Token")
	flags.Func("openshift-sar", "`JSON` of a SubjectAccessReview, or of a list of them, that a user needs for access", s.addReviews)
	flags.StringVar(&s.API, "openshift-api", "https://kubernetes.default.svc", "`URL` of the API server")
	flags.Func("openshift-ca", "`file` with a certificate authority for the API server (repeatable; default "+defaultCA+")", appendTo(&s.CAs))
	flags.Func("skip-auth-regex", "regular `expression` for paths that need no login (repeatable)", func(text string) error {
		if text == "" {
			return errors.New("an empty expression would match every path")
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
	if len(s.CAs) == 0 {
		s.CAs = []string{defaultCA}
	}
	if s.HTTPS != "" && (s.Certificate == "" || s.Key == "") {
		check(errors.New("--https-address needs --tls-cert and --tls-key"))
	}
	check(s.checkUpstreams())
	check(s.setRedirectURL(*redirect))
	check(s.checkCookie())
	check(s.readSecrets(*account, *cookieFile))
	return s, errors.Join(problems...)
}

// appendTo returns the function that parses a flag that can be set several times.
func appendTo(values *[]string) func(string) error {
	return func(value string) error {
		*values = append(*values, value)
		return nil
	}
}

// setRedirectURL sets the URL of callbackPath. It rejects a URL with any other path, because a
// login cannot complete there.
func (s *Settings) setRedirectURL(text string) (err error) {
	s.RedirectURL, err = url.Parse(text)
	if err != nil || text == "" {
		return err
	}
	if s.RedirectURL.Path == "" || s.RedirectURL.Path == "/" {
		s.RedirectURL.Path = callbackPath
	}
	if s.RedirectURL.Scheme != "https" || s.RedirectURL.Host == "" || s.RedirectURL.Path != callbackPath {
		return fmt.Errorf("--redirect-url is %q, must be https://HOST%s", text, callbackPath)
	}
	return nil
}

// checkCookie validates the cookie flags. Otherwise, browsers would silently ignore an invalid
// cookie.
func (s *Settings) checkCookie() error {
	var errs []error
	if err := cookie(s.CookieName, "", 1).Valid(); err != nil {
		errs = append(errs, fmt.Errorf("--cookie-name is %q, must be letters, digits, - or _", s.CookieName))
	}
	if s.CookieExpire < time.Second {
		errs = append(errs, fmt.Errorf("--cookie-expire is %s, must be at least 1s", s.CookieExpire))
	}
	return errors.Join(errs...)
}

// readSecrets sets the OAuth client and the cookie secret. It reads them from the files that the
// flags specify.
func (s *Settings) readSecrets(account, cookieFile string) error {
	var errs []error
	read := func(file string) string {
		text, err := readSecret(file)
		errs = append(errs, err)
		return text
	}
	if account != "" {
		s.ClientID = "system:serviceaccount:" + read(accountFolder+"namespace") + ":" + account
		if s.ClientSecretFile == "" && s.ClientSecret == "" {
			s.ClientSecretFile = accountFolder + "token"
		}
	}
	if _, err := s.clientSecret(); err != nil {
		errs = append(errs, err)
	}
	if cookieFile != "" {
		s.CookieSecret = read(cookieFile)
	}
	if s.ClientID == "" || s.ClientSecret == "" && s.ClientSecretFile == "" {
		errs = append(errs, errors.New("--openshift-service-account, or --client-id and --client-secret, is missing"))
	}
	if s.CookieSecret == "" {
		errs = append(errs, errors.New("--cookie-secret is missing"))
	}
	return errors.Join(errs...)
}

// clientSecret returns the OAuth client's secret. It reads the file on each call, because the file
// can contain a service account token, which the kubelet renews.
func (s *Settings) clientSecret() (string, error) {
	if s.ClientSecretFile == "" {
		return s.ClientSecret, nil
	}
	return readSecret(s.ClientSecretFile)
}

func readSecret(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("read secret: file %q is empty", file)
	}
	return secret, nil
}

// redirectURL returns the URL of callbackPath for a request. host is the request's host.
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
