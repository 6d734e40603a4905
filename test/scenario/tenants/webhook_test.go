package tenants

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/test/kit"
)

// review is an admission webhook that adds a label to objects without the label, and rejects
// objects with a forbidden name.
func review(request *admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(request.Object.Raw, &object); err != nil {
		return &admissionv1.AdmissionResponse{UID: request.UID, Result: &metav1.Status{Message: err.Error()}}
	}
	response := &admissionv1.AdmissionResponse{UID: request.UID, Allowed: object.Name != "forbidden"}
	switch {
	case !response.Allowed:
		response.Result = &metav1.Status{Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "the webhook forbids " + request.Kind.Kind}
	case object.Labels == nil:
		kind := admissionv1.PatchTypeJSONPatch
		response.PatchType, response.Patch = &kind, []byte(`[{"op":"add","path":"/metadata/labels","value":{"reviewed":"yes"}}]`)
	}
	return response
}

func TestWebhooksReviewOpenShiftTypes(t *testing.T) {
	c := tenants(t)
	authority := certtest.New(t)
	pair := authority.Issue(t, "webhook")
	listener, err := c.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question admissionv1.AdmissionReview
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil || question.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		question.Response = review(question.Request)
		_ = json.NewEncoder(w).Encode(question)
	})}
	go server.ServeTLS(listener, pair.CertFile, pair.KeyFile)
	t.Cleanup(func() { server.Close() })
	ca, err := os.ReadFile(authority.File)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"Mutating", "Validating"} {
		c.Apply(fmt.Sprintf(`
apiVersion: admissionregistration.k8s.io/v1
kind: %[1]sWebhookConfiguration
metadata: {name: tenants}
webhooks:
- name: ours.example.com
  clientConfig: {url: "https://%[2]s/review", caBundle: %[3]s}
  rules: [{operations: [CREATE], apiGroups: [route.openshift.io, apps.openshift.io, project.openshift.io], apiVersions: [v1], resources: [routes, deploymentconfigs, projectrequests]}]
  matchConditions: [{name: rita, expression: "request.userInfo.username == 'rita'"}]
  failurePolicy: Fail
  admissionReviewVersions: [v1]
  sideEffects: None
`, kind, listener.Addr(), base64.StdEncoding.EncodeToString(ca)))
		t.Cleanup(func() { c.OC("delete", strings.ToLower(kind)+"webhookconfiguration", "tenants") })
	}
	rita := c.User("rita")
	rita.RequestProject(c, "rita-shop")
	routes := kit.GroupPath("route.openshift.io", "rita-shop", "routes")
	route := func(name string) string {
		return "{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: " + name + "}, spec: {to: {name: web}}}"
	}
	c.WaitFor("the webhooks", func(context.Context) error {
		response, err := rita.Try("POST", routes+"?", route("try"))
		if err == nil && !strings.Contains(response, `"reviewed":"yes"`) {
			err = fmt.Errorf("they are not called")
		}
		return err
	})
	has(t, rita.May("POST", routes, route("allowed")), `"reviewed":"yes"`)
	rita.MayNot("POST", routes, route("forbidden"), "the webhook forbids Route")
	rita.MayNot("POST", requests, request("forbidden"), "the webhook forbids ProjectRequest")
	rita.MayNot("POST", kit.GroupPath("apps.openshift.io", "rita-shop", "deploymentconfigs"),
		"{apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {name: forbidden}, spec: {selector: {a: b}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: main, image: none}]}}}}", "the webhook forbids DeploymentConfig")
}
