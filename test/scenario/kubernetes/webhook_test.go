package kubernetes

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// selfSigned returns an untrusted certificate and its key, in PEM format.
func selfSigned(t *testing.T, name string) (certificate, key []byte) {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(private)})
}

// reservations is the path of the webhook that rejects reserved namespace names (Architecture 3.9,
// 4.6.2.3).
const reservations = "/apis/admission.online.openshift.io/v1beta1/namespacereservations"

// review returns the response to an admission review. At /label, it adds the label "checked" to an
// object. At /sidecar, it adds a container to a pod. At /labeled, it rejects an object without the
// label. At reservations, it rejects a namespace with a reserved name. At /first and /second, it
// rejects all requests.
func review(path string, request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return &admissionv1.AdmissionResponse{Result: &metav1.Status{Message: err.Error()}}
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: true}
	switch {
	case path == "/label" && object.Labels["unchecked"] == "":
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType, response.Patch = &kind, []byte(`[{"op":"add","path":"/metadata/labels/checked","value":"yes"}]`)
	case path == "/labeled" && object.Labels["checked"] == "":
		response.Allowed, response.Result = false, &metav1.Status{Message: "the label checked is required"}
	case path == "/sidecar":
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType, response.Patch = &kind, []byte(`[{"op":"add","path":"/spec/containers/-","value":{"name":"sidecar","image":"none"}}]`)
	case path == "/first" || path == "/second":
		response.Allowed, response.Result = false, &metav1.Status{Message: path + " refuses everything"}
	case path == reservations && strings.HasPrefix(object.Name, "reserved-"):
		response.Allowed, response.Result = false, &metav1.Status{Message: "the name is reserved"}
	}
	return response
}

// meet waits until both /first and /second have received a request. It reports whether that
// happened before the timeout.
func meet(r *http.Request, meeting chan struct{}) bool {
	arrive, wait := meeting, meeting
	switch r.URL.Path {
	case "/first":
		wait = nil
	case "/second":
		arrive = nil
	default:
		return true
	}
	select {
	case arrive <- struct{}{}:
		return true
	case <-wait:
		return true
	case <-r.Context().Done():
		return false
	}
}

// serveWebhooks starts a server for the webhooks, and creates a service for it in the test's
// namespace. The service's pod forwards connections to the server. serveWebhooks returns the CA
// bundle.
func serveWebhooks(t *testing.T, c *kit.Cluster) (ca string) {
	t.Helper()
	certificate, key := selfSigned(t, "webhooks."+c.Namespace+".svc")
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Gateway.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	meeting := make(chan struct{})
	server := http.Server{
		ReadHeaderTimeout: time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var question admissionv1.AdmissionReview
			if err := json.NewDecoder(r.Body).Decode(&question); err != nil || question.Request == nil {
				http.Error(w, "no review", http.StatusBadRequest)
				return
			}
			if !meet(r, meeting) {
				http.Error(w, "the other webhook was not called", http.StatusGatewayTimeout)
				return
			}
			question.Response = review(r.URL.Path, question.Request)
			_ = json.NewEncoder(w).Encode(question)
		}),
	}
	go server.ServeTLS(listener, "", "")
	t.Cleanup(func() { server.Close() })
	c.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Service
metadata: {name: webhooks, labels: {role: webhook}}
spec: {selector: {role: webhook}, ports: [{port: 443, targetPort: 8000}]}
---
apiVersion: v1
kind: Pod
metadata: {name: webhook, labels: {role: webhook}}
spec: {terminationGracePeriodSeconds: 1, containers: [{name: webhook, image: %s, imagePullPolicy: IfNotPresent, ports: [{containerPort: 8000}],
  command: [nc, -ll, -p, "8000", -e, nc, %s, "%d"]}]}
`, kit.ToolsImage, c.Gateway, listener.Addr().(*net.TCPAddr).Port))
	c.WaitPodRunning("webhook")
	return base64.StdEncoding.EncodeToString(certificate)
}

const webhooks = `
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: scenario-%[2]s}
webhooks:
- name: %[2]s.scenario.example.com
  clientConfig: {service: {namespace: %[3]s, name: %[4]s, path: /%[2]s}, caBundle: %[5]s}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: ["*"], resources: [%[6]s]}]
  failurePolicy: %[7]s
  matchConditions: [{name: ours, expression: "request.namespace == '%[3]s' || request.kind.kind == 'Namespace'"}]
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 3
---
`

const namespaceReservations = `
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: namespacereservations.admission.online.openshift.io}
webhooks:
- name: namespacereservations.admission.online.openshift.io
  clientConfig: {service: {namespace: %s, name: webhooks, path: ` + reservations + `}, caBundle: %s}
  rules: [{operations: [CREATE], apiGroups: [""], apiVersions: ["*"], resources: [namespaces]}]
  failurePolicy: Ignore
  admissionReviewVersions: [v1]
  sideEffects: None
  timeoutSeconds: 10
---
`

func TestWebhooksMutateAndRejectObjects(t *testing.T) {
	c := kit.Shared(t)
	ca := serveWebhooks(t, c)
	c.Apply(fmt.Sprintf(webhooks, "Mutating", "label", c.Namespace, "webhooks", ca, "pods", "Fail") +
		fmt.Sprintf(webhooks, "Validating", "labeled", c.Namespace, "webhooks", ca, "pods", "Fail") +
		fmt.Sprintf(webhooks, "Mutating", "sidecar", c.Namespace, "webhooks", ca, "pods", "Fail") +
		fmt.Sprintf(webhooks, "Validating", "first", c.Namespace, "webhooks", ca, "limitranges", "Fail") +
		fmt.Sprintf(webhooks, "Validating", "second", c.Namespace, "webhooks", ca, "limitranges", "Fail") +
		fmt.Sprintf(namespaceReservations, c.Namespace, ca) +
		fmt.Sprintf(webhooks, "Validating", "ignored", c.Namespace, "nobody", ca, "pods", "Ignore"))
	remove := func() {
		c.OC("delete", "mutatingwebhookconfiguration", "scenario-label", "scenario-sidecar", "--ignore-not-found")
		c.OC("delete", "validatingwebhookconfiguration", "scenario-labeled", "scenario-first", "scenario-second", "scenario-ignored", "scenario-failing",
			"namespacereservations.admission.online.openshift.io", "--ignore-not-found")
	}
	t.Cleanup(remove)
	n := 0
	c.WaitFor("the webhooks", func(context.Context) error {
		n++
		name := fmt.Sprintf("pod-%d", n)
		if err := create(t, c, pod(name, sleeper(), unscheduled)); err != nil {
			return err
		}
		if pod := c.Pod(name); pod.Labels["checked"] != "yes" || len(pod.Spec.Containers) != 2 {
			return fmt.Errorf("label %q and %d containers", pod.Labels["checked"], len(pod.Spec.Containers))
		}
		return nil
	})
	unchecked := strings.Replace(pod("unchecked", sleeper(), unscheduled), "labels: {", "labels: {unchecked: 'yes', ", 1)
	expectRejected(t, c, unchecked, `admission webhook "labeled.scenario.example.com" denied the request: the label checked is required`)
	expectRejected(t, c, "{apiVersion: v1, kind: Namespace, metadata: {name: reserved-scenario}}", "the name is reserved")
	if _, err := c.Client.CoreV1().Pods(c.Namespace).Get(t.Context(), "unchecked", metav1.GetOptions{}); err == nil {
		t.Error("a rejected object is stored")
	}
	// The API server must call the webhooks concurrently. The message names only one of the
	// webhooks that rejected the request.
	c.WaitFor("two webhooks that are called concurrently", func(ctx context.Context) error {
		object := &corev1.LimitRange{ObjectMeta: metav1.ObjectMeta{GenerateName: "l-"}}
		_, err := c.Client.CoreV1().LimitRanges(c.Namespace).Create(ctx, object, metav1.CreateOptions{})
		if err == nil || strings.Count(err.Error(), "denied the request") != 1 || strings.Count(err.Error(), "refuses everything") != 1 {
			return fmt.Errorf("limit range was created, or %v", err)
		}
		return nil
	})
	// The failure policy determines whether the API server ignores a webhook that does not respond.
	// With the policy Fail, the API server must reject the request.
	c.Apply(fmt.Sprintf(webhooks, "Validating", "failing", c.Namespace, "nobody", ca, "configmaps", "Fail"))
	c.WaitFor("the webhook that fails", func(ctx context.Context) error {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "c-"}}
		_, err := c.Client.CoreV1().ConfigMaps(c.Namespace).Create(ctx, object, metav1.CreateOptions{})
		if err == nil || !strings.Contains(err.Error(), `failed calling webhook "failing.scenario.example.com"`) {
			return fmt.Errorf("config map was created, or %v", err)
		}
		return nil
	})
}
