package catalogcontroller

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

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
// creates, can have any address. A ServiceBroker must be a pod of its own project behind a service,
// or have an address that users are allowed to connect to.
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

// serviceAddress returns the address at which the catalog reaches a service. This is the service's
// own address or, for a ServiceBroker, the address of one of the service's pods. It returns "" if
// the host is not the name of a service.
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
	number, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		return "", errors.New("the broker's URL has no valid port")
	}
	if broker.namespace != "" {
		return r.podAddress(ctx, object, int32(number))
	}
	return net.JoinHostPort(object.Spec.ClusterIP, port), nil
}

// podAddress returns the address of a running pod behind a service's port. The catalog does not
// connect to the address of a project's service. Otherwise, a user's endpoints could lead the
// catalog to servers that the platform must not connect to.
func (r *reconciler) podAddress(ctx context.Context, service *corev1.Service, port int32) (string, error) {
	fail := func(format string, args ...any) (string, error) {
		text := fmt.Sprintf("the broker's service %s/%s ", service.Namespace, service.Name) + fmt.Sprintf(format, args...)
		return "", &problem{reason: errorFetchingCatalog, definite: true, message: text}
	}
	at := slices.IndexFunc(service.Spec.Ports, func(p corev1.ServicePort) bool {
		return p.Port == port && cmp.Or(p.Protocol, corev1.ProtocolTCP) == corev1.ProtocolTCP
	})
	if at < 0 {
		return fail("has no port %d", port)
	}
	list, err := r.kube.DiscoveryV1().EndpointSlices(service.Namespace).List(ctx, metav1.ListOptions{
		LabelSelector: labels.Set{discoveryv1.LabelServiceName: service.Name}.String(),
	})
	if err != nil {
		return fail("has endpoints that cannot be listed: %s", err)
	}
	for _, slice := range list.Items {
		for _, target := range slice.Ports {
			if target.Port == nil || ptr.Deref(target.Name, "") != service.Spec.Ports[at].Name || ptr.Deref(target.Protocol, corev1.ProtocolTCP) != corev1.ProtocolTCP {
				continue
			}
			for _, endpoint := range slice.Endpoints {
				address, err := r.ofPod(ctx, service.Namespace, endpoint)
				if err != nil {
					return fail("has pods that cannot be read: %s", err)
				}
				if address != "" {
					return net.JoinHostPort(address, strconv.Itoa(int(*target.Port))), nil
				}
			}
		}
	}
	return fail("has no running pod of the project on port %d; to use a server outside the cluster, specify its address in the broker's URL", port)
}

// ofPod returns an endpoint's address if it belongs to a running pod in the project. Otherwise, it
// returns "".
func (r *reconciler) ofPod(ctx context.Context, namespace string, endpoint discoveryv1.Endpoint) (string, error) {
	reference := endpoint.TargetRef
	if reference == nil || reference.Kind != "Pod" || !ptr.Deref(endpoint.Conditions.Ready, true) {
		return "", nil
	}
	pod, err := r.kube.CoreV1().Pods(namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if err != nil {
		return "", ignoreNotFound(err)
	}
	if pod.Status.Phase != corev1.PodRunning {
		return "", nil
	}
	for _, address := range endpoint.Addresses {
		if slices.Contains(pod.Status.PodIPs, corev1.PodIP{IP: address}) {
			return address, nil
		}
	}
	return "", nil
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
