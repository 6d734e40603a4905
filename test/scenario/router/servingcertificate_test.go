package router

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/internal/eventually"
	"github.com/slipway-platform/slipway/test/kit"
)

// outside is a service without pods. Its endpoint is one of the machine's ports.
const outside = `
apiVersion: v1
kind: Service
metadata: {name: %[1]s, annotations: {%[4]s}}
spec: {ports: [{name: tls, port: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
endpoints: [{addresses: [%[2]q], conditions: {ready: true}}]
ports: [{name: tls, port: %[3]s, protocol: TCP}]
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: %[1]s}
spec: {host: %[1]s.reencrypt.example.com, to: {kind: Service, name: %[1]s}, tls: {termination: reencrypt}}
`

// serveTLS serves HTTPS on one of the machine's ports, with the certificate in a secret. It rejects
// admission reviews, and responds to all other requests with plain text.
func serveTLS(t *testing.T, c *kit.Cluster, secret string) (host, port string) {
	t.Helper()
	certificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		existing, err := c.Client.CoreV1().Secrets(c.Namespace).Get(context.Background(), secret, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		pair, err := tls.X509KeyPair(existing.Data[corev1.TLSCertKey], existing.Data[corev1.TLSPrivateKeyKey])
		return &pair, err
	}
	listener, err := c.Listen("tcp", net.JoinHostPort(c.Address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review admissionv1.AdmissionReview
		if json.NewDecoder(r.Body).Decode(&review) != nil || review.Request == nil {
			fmt.Fprint(w, "secure")
			return
		}
		review.Response = &admissionv1.AdmissionResponse{UID: review.Request.UID, Result: &metav1.Status{Message: "refused over TLS"}}
		_ = json.NewEncoder(w).Encode(review)
	})}
	go func() { _ = server.Serve(tls.NewListener(listener, &tls.Config{GetCertificate: certificate})) }()
	t.Cleanup(func() { _ = server.Close() })
	host, port, _ = net.SplitHostPort(listener.Addr().String())
	return host, port
}

const refuseMaps = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: %[1]s, annotations: {service.beta.openshift.io/inject-cabundle: "true"}}
webhooks:
- name: refuse.example.com
  clientConfig: {service: {namespace: %[1]s, name: safe}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %[1]s}}
  objectSelector: {matchLabels: {refuse: me}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}]
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
`

func TestServiceCertificatesAreTrustedByRouterPodsAndWebhooks(t *testing.T) {
	c := kit.Shared(t)
	host, port := serveTLS(t, c, "safe-tls")
	c.Apply(fmt.Sprintf(outside, "safe", host, port, "service.alpha.openshift.io/serving-cert-secret-name: safe-tls"))
	c.Apply(fmt.Sprintf(outside, "impostor", host, port, ""))
	over := func(name string) string {
		status, body := fetch(c, 443, name+".reencrypt.example.com")
		if status != http.StatusOK {
			return fmt.Sprint(status)
		}
		return body
	}
	eventually.Equal(t, "response of the service", func() string { return over("safe") }, "secure")
	eventually.Equal(t, "status of the impostor's route", func() string { return decision(c, "impostor") }, "public:True")
	eventually.Equal(t, "response of a service with the certificate of another service", func() string { return over("impostor") }, "503")

	authority, err := os.ReadFile(c.Path("pki", "service-ca.crt"))
	if err != nil {
		t.Fatal(err)
	}
	c.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: trust, annotations: {service.alpha.openshift.io/inject-cabundle: "true"}}}`)
	eventually.Equal(t, "CA certificates in an annotated ConfigMap", func() string {
		configMap, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Get(context.Background(), "trust", metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		return configMap.Data["service-ca.crt"]
	}, string(authority))
	c.Apply(`{apiVersion: v1, kind: Pod, metadata: {name: reader}, spec: {containers: [{name: main, image: ` + kit.ToolsImage + `, command: [sleep, "3600"]}]}}`)
	c.WaitPodRunning("reader")
	if got := c.Exec("reader", "cat", "/var/run/secrets/kubernetes.io/serviceaccount/service-ca.crt"); got != string(authority) {
		t.Errorf("a pod reads %q", got)
	}

	c.Apply(fmt.Sprintf(refuseMaps, c.Namespace))
	t.Cleanup(func() { c.OC("delete", "validatingwebhookconfiguration", c.Namespace) })
	c.WaitFor("refusal by the webhook", func(ctx context.Context) error {
		name := fmt.Sprintf("refused-%d", time.Now().UnixNano())
		_, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"refuse": "me"}}}, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), "refused over TLS") {
			return fmt.Errorf("the connection fails with %v", err)
		}
		return nil
	})

	patch := []byte(`{"data":{"tls.crt":"` + base64.StdEncoding.EncodeToString([]byte("spoiled")) + `"}}`)
	if _, err := c.Client.CoreV1().Secrets(c.Namespace).Patch(context.Background(), "safe-tls", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.Equal(t, "response of the service with a new certificate", func() string { return over("safe") }, "secure")
}
