package catalogcontroller

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/osb"
	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// builtInHost is the API server address of the built-in brokers.
const builtInHost = "https://kubernetes.default.svc:443"

// builtInPath returns the API server path of a built-in broker, or "" for other brokers. The
// catalog calls built-in brokers with its own credentials, because these brokers act on behalf of
// the user that the request identifies.
func builtInPath(broker *brokerView) string {
	path := map[string]string{
		"template-service-broker": "/brokers/template.openshift.io",
		"ansible-service-broker":  "/brokers/ansible.openshift.io",
	}[broker.name]
	if path == "" || broker.namespace != "" || broker.spec.URL != builtInHost+path {
		return ""
	}
	return path
}

// connection returns a client for a broker. The caller must call end. If the broker has reached the
// request limit, the error is errBusy.
func (r *reconciler) connection(ctx context.Context, broker *brokerView) (client *osb.Client, end func(), err error) {
	release, ok := r.requests.acquire(broker)
	if !ok {
		return nil, nil, errBusy
	}
	client, closeIdle, err := r.connect(ctx, broker)
	if err != nil {
		release()
		return nil, nil, err
	}
	return client, func() { closeIdle(); release() }, nil
}

func (r *reconciler) connect(ctx context.Context, broker *brokerView) (client *osb.Client, closeIdle func(), err error) {
	client = &osb.Client{URL: broker.spec.URL, Timeout: r.timing.RequestTimeout, IsTenant: broker.namespace != ""}
	if path := builtInPath(broker); path != "" {
		client.URL, client.Transport = strings.TrimSuffix(r.config.Host, "/")+path, r.loopback
		return client, func() {}, nil
	}
	if client.Authorization, err = r.authorization(ctx, broker); err != nil {
		return nil, nil, err
	}
	client.Transport, closeIdle, err = r.transport(ctx, broker)
	return client, closeIdle, err
}

// authorization returns the Authorization header value for a broker.
func (r *reconciler) authorization(ctx context.Context, broker *brokerView) (string, error) {
	reference := broker.basic
	if reference == nil {
		reference = broker.bearer
	}
	if reference == nil {
		return "", nil
	}
	secret, err := r.kube.CoreV1().Secrets(reference.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return "", &problem{reason: "ErrorGettingAuthCredentials", message: fmt.Sprintf("Error getting broker auth credentials: %s", err), definite: true}
	}
	key := func(name string) (string, error) {
		value, ok := secret.Data[name]
		if !ok {
			return "", &problem{reason: "ErrorGettingAuthCredentials", definite: true,
				message: fmt.Sprintf("Error getting broker auth credentials: secret %s/%s has no key %q", reference.Namespace, reference.Name, name)}
		}
		return string(value), nil
	}
	if broker.basic == nil {
		token, err := key(v1beta1.TokenKey)
		return "Bearer " + strings.TrimSpace(token), err
	}
	username, err := key(v1beta1.UsernameKey)
	if err != nil {
		return "", err
	}
	password, err := key(v1beta1.PasswordKey)
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(username+":"+password)), err
}

// transport returns the transport for a broker. A ClusterServiceBroker, which an administrator
// creates, can have any address. A ServiceBroker must be a service in its own project, or have an
// address that users are allowed to connect to.
func (r *reconciler) transport(ctx context.Context, broker *brokerView) (http.RoundTripper, func(), error) {
	target, err := url.Parse(broker.spec.URL)
	if err != nil {
		return nil, nil, errors.New("the broker's URL is not valid")
	}
	config := &tls.Config{InsecureSkipVerify: broker.spec.InsecureSkipTLSVerify, MinVersion: tls.VersionTLS12}
	if len(broker.spec.CABundle) > 0 {
		config.RootCAs = x509.NewCertPool()
		config.RootCAs.AppendCertsFromPEM(broker.spec.CABundle)
	}
	dialer := r.dialer
	address := hostPort(target)
	service, err := r.serviceAddress(ctx, broker, target.Hostname(), target.Port(), target.Scheme)
	switch {
	case err != nil:
		return nil, nil, err
	case service != "":
		config.ServerName = target.Hostname()
		dialer = dialer.With(service)
	case broker.namespace == "":
		dialer = dialer.With(address)
	}
	transport := dialer.TransportTLS(config)
	transport.SetHeaderTimeout(r.timing.RequestTimeout)
	if service == "" {
		return transport, transport.CloseIdleConnections, nil
	}
	transport.SkipProxy()
	return redirected{transport, service}, transport.CloseIdleConnections, nil
}

func hostPort(target *url.URL) string {
	port := target.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[target.Scheme]
	}
	return net.JoinHostPort(target.Hostname(), port)
}

// serviceAddress returns a service's address, or "" if the host is not the name of a service.
func (r *reconciler) serviceAddress(ctx context.Context, broker *brokerView, host, port, scheme string) (string, error) {
	name := strings.TrimSuffix(strings.TrimSuffix(host, "."), "."+r.domain)
	rest, ok := strings.CutSuffix(name, ".svc")
	service, namespace, isService := strings.Cut(rest, ".")
	if !ok || !isService || strings.Contains(namespace, ".") {
		return "", nil
	}
	if broker.namespace != "" && broker.namespace != namespace {
		return "", &problem{reason: errorFetchingCatalog, definite: true, message: fmt.Sprintf("the broker's URL names the service %q of project %q; "+
			"a ServiceBroker can use the services of its own project only", service, namespace)}
	}
	object, err := r.kube.CoreV1().Services(namespace).Get(ctx, service, metav1.GetOptions{})
	if err != nil {
		return "", &problem{reason: errorFetchingCatalog, definite: true, message: fmt.Sprintf("read the broker's service: %s", err)}
	}
	if object.Spec.ClusterIP == "" || object.Spec.ClusterIP == corev1.ClusterIPNone {
		return "", &problem{reason: errorFetchingCatalog, definite: true, message: fmt.Sprintf("the broker's service %s/%s has no cluster IP", namespace, service)}
	}
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[scheme]
	}
	if _, err := strconv.Atoi(port); err != nil {
		return "", errors.New("the broker's URL has no valid port")
	}
	return net.JoinHostPort(object.Spec.ClusterIP, port), nil
}

// redirected is a transport that sends requests to a different address and keeps the Host header.
type redirected struct {
	http.RoundTripper
	address string
}

// RoundTrip sends a request.
func (r redirected) RoundTrip(request *http.Request) (*http.Response, error) {
	changed := request.Clone(request.Context())
	changed.Host, changed.URL.Host = request.URL.Host, r.address
	return r.RoundTripper.RoundTrip(changed)
}

// retryDelay returns the retry delay that a broker's error response requests.
func retryDelay(err error) time.Duration {
	var response *osb.Error
	if errors.As(err, &response) {
		return response.RetryAfter
	}
	return 0
}
