package login

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd/api"
)

// normalizeServer adds the scheme and port to an address: `host` becomes https://host:443, and
// `host:8443` becomes https://host:8443. It removes any path, query and user.
func normalizeServer(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("The server URL %q is not valid; use the form https://host:8443", text)
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || port == 0) {
		return "", fmt.Errorf("The server URL %q is not valid: Not a valid port: %s", text, u.Port())
	}
	if u.Port() == "" {
		u.Host = net.JoinHostPort(u.Hostname(), map[string]string{"https": "443", "http": "80"}[u.Scheme])
	}
	u.Path, u.RawQuery, u.Fragment, u.User = "", "", "", nil
	return u.String(), nil
}

// connect determines how to verify the server's certificate: with the CA given on the command line,
// or with the CAs in the kubeconfig and the system's CAs. If verification fails, connect asks
// whether to skip it.
func (o *loginOptions) connect(ctx context.Context) (*api.Cluster, error) {
	cluster := &api.Cluster{Server: o.server, InsecureSkipTLSVerify: o.insecure || o.isKnownInsecure()}
	if strings.HasPrefix(o.server, "http://") || o.insecure || o.isKnownInsecure() {
		return cluster, nil
	}
	var authorities [][]byte
	if o.authority != "" {
		content, err := os.ReadFile(o.authority)
		if err != nil {
			return nil, fmt.Errorf("read certificate authority: %w", err)
		}
		authorities = [][]byte{content}
	} else {
		authorities = append(o.knownAuthorities(), nil) // nil means the system's CAs
	}
	var rejection error
	for _, authority := range authorities {
		err := o.verify(ctx, authority)
		if err == nil {
			cluster.CertificateAuthorityData = authority
			return cluster, nil
		}
		if !isCertificateProblem(err) {
			return nil, fmt.Errorf("Unable to connect to the server %s: %w", o.server, err)
		}
		rejection = err
	}
	if o.authority != "" {
		return nil, fmt.Errorf("The certificate authority %s does not verify the server's certificate: %w", o.authority, rejection)
	}
	return cluster, o.askInsecure(cluster, rejection)
}

// isKnownInsecure reports whether the current context is for this server and skips certificate
// verification. In this case, all other commands also skip it.
func (o *loginOptions) isKnownInsecure() bool {
	current := o.config.Contexts[o.config.CurrentContext]
	if o.authority != "" || current == nil || o.config.Clusters[current.Cluster] == nil {
		return false
	}
	cluster := o.config.Clusters[current.Cluster]
	return cluster.Server == o.server && cluster.InsecureSkipTLSVerify
}

// knownAuthorities returns the CAs in the kubeconfig, beginning with this server's CAs.
func (o *loginOptions) knownAuthorities() (authorities [][]byte) {
	for _, same := range []bool{true, false} {
		for _, cluster := range o.merged.Clusters {
			if (cluster.Server == o.server) != same {
				continue
			}
			data := cluster.CertificateAuthorityData
			if len(data) == 0 && cluster.CertificateAuthority != "" {
				data, _ = os.ReadFile(cluster.CertificateAuthority) // without the file, verification fails
			}
			if len(data) > 0 {
				authorities = append(authorities, data)
			}
		}
	}
	return authorities
}

// dialTimeout is the timeout for connecting to a server.
const dialTimeout = 15 * time.Second

// verify performs a TLS handshake with the server. If authority is nil, it trusts the system's CAs.
func (o *loginOptions) verify(ctx context.Context, authority []byte) error {
	u, err := url.Parse(o.server)
	if err != nil {
		return err
	}
	config := &tls.Config{}
	if authority != nil {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(authority)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", u.Host)
	if err != nil {
		return err
	}
	return conn.Close()
}

// isCertificateProblem reports whether err means that the server's certificate could not be
// verified.
func isCertificateProblem(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.As(err, &verification)
}

// askInsecure asks whether to connect without certificate verification, and returns an error if the
// user declines.
func (o *loginOptions) askInsecure(cluster *api.Cluster, rejection error) error {
	var host x509.HostnameError
	if errors.As(rejection, &host) {
		fmt.Fprintln(o.ErrOut, "The server is using a certificate that does not match its hostname:", host.Error())
	} else {
		fmt.Fprintln(o.ErrOut, "The server uses a certificate signed by an unknown authority.")
	}
	fmt.Fprintln(o.ErrOut, "You can bypass the certificate check, but any data you send to the server could be intercepted by others.")
	response, err := ask(o.IOStreams, o.input, "Use insecure connections? (y/n): ", "n")
	if err != nil {
		return err
	}
	fmt.Fprintln(o.ErrOut)
	if !strings.HasPrefix(strings.ToLower(response), "y") {
		return errors.New("The server uses a certificate signed by unknown authority. You may need to use the --certificate-authority flag " +
			"to provide the path to a certificate file for the certificate authority, or --insecure-skip-tls-verify to bypass the certificate check " +
			"and use insecure connections.")
	}
	cluster.InsecureSkipTLSVerify = true
	return nil
}
