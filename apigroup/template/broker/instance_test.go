package broker

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	templatev1 "github.com/openshift/api/template/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/apitest"
	"github.com/slipway-platform/slipway/internal/osbserver"
)

const id = "a7d1bcf4-4ba2-4a2e-b4c6-0d9a3a0f4e11"

// catalogue is a broker that offers one template, together with clients of the API server that the
// broker uses. Every user has all permissions.
type catalogue struct {
	t         *testing.T
	broker    http.Handler
	kube      kubernetes.Interface
	templates templateclient.Interface
	service   string
	// refused is the resource that users may not create.
	refused string
}

// transport rejects the creation of objects of the refused resource.
type transport struct {
	*catalogue
	next http.RoundTripper
}

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPost || t.refused == "" || !strings.HasSuffix(r.URL.Path, t.refused) {
		return t.next.RoundTrip(r)
	}
	w := httptest.NewRecorder()
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "exceeded quota", "reason": "Forbidden", "code": 403}`)
	return w.Result(), nil
}

func newCatalogue(t *testing.T) *catalogue {
	t.Helper()
	// The in-memory API server supports only the types in client-go's scheme.
	if err := templatev1.Install(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	config := apitest.Start(t).Config()
	c := &catalogue{t: t, kube: kubernetes.NewForConfigOrDie(config), templates: templateclient.NewForConfigOrDie(config)}
	template, err := c.templates.TemplateV1().Templates("openshift").Create(t.Context(), &templatev1.Template{
		ObjectMeta: metav1.ObjectMeta{Name: "db"}, Parameters: []templatev1.Parameter{{Name: "NAME"}},
		Objects: []runtime.RawExtension{{Raw: []byte(`{"osbserver.APIVersion": "v1", "kind": "Secret", "metadata": {"name": "${NAME}"}}`)}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.service = string(template.UID)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return transport{c, next} })
	c.broker, err = New(apiserver.Deps{Loopback: config, Authorizer: authorizerfactory.NewAlwaysAllowAuthorizer()}, []string{"openshift"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// ask sends a request, verifies the response's status code, and returns the response body.
func (c *catalogue) ask(method, path, body string, code int) string {
	c.t.Helper()
	r := httptest.NewRequest(method, Root+"v2/service_instances/"+id+path, strings.NewReader(body))
	r.Header.Set(osbserver.VersionHeader, osbserver.APIVersion)
	r.Header.Set("Content-Type", "application/json")
	r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "alice"}))
	w := httptest.NewRecorder()
	c.broker.ServeHTTP(w, r)
	if w.Code != code {
		c.t.Errorf("%s %s: %d %s, want %d", method, path, w.Code, w.Body, code)
	}
	return w.Body.String()
}

func (c *catalogue) provision(namespace, name string, code int) {
	c.t.Helper()
	c.ask(http.MethodPut, "?accepts_incomplete=true", fmt.Sprintf(
		`{"service_id": %q, "plan_id": %[1]q, "context": {"platform": "kubernetes", "namespace": %q}, "parameters": {"NAME": %q}}`, c.service, namespace, name), code)
}

func (c *catalogue) record() *templatev1.BrokerTemplateInstance {
	c.t.Helper()
	record, err := c.templates.TemplateV1().BrokerTemplateInstances().Get(c.t.Context(), id, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return record
}

// TestRequestContinuesAfterFailure deletes the objects that each step of a request has created, as
// if the request had failed before that step.
func TestRequestContinuesAfterFailure(t *testing.T) {
	c := newCatalogue(t)
	c.provision("shop", "db", http.StatusAccepted)
	complete := c.record().Spec
	undo := []func() error{
		func() error {
			record := c.record()
			record.Spec.Secret.UID, record.Spec.TemplateInstance.UID = "", ""
			_, err := c.templates.TemplateV1().BrokerTemplateInstances().Update(t.Context(), record, metav1.UpdateOptions{})
			return err
		},
		func() error {
			return c.templates.TemplateV1().TemplateInstances("shop").Delete(t.Context(), id, metav1.DeleteOptions{})
		},
		func() error { return c.kube.CoreV1().Secrets("shop").Delete(t.Context(), id, metav1.DeleteOptions{}) },
	}
	for steps := range undo {
		for _, undoStep := range undo[:steps+1] {
			if err := undoStep(); err != nil {
				t.Fatal(err)
			}
		}
		c.provision("shop", "db", http.StatusAccepted)
		spec := c.record().Spec
		if spec.Secret.UID == "" || spec.TemplateInstance.UID == "" || (steps == 0) != (spec.TemplateInstance == complete.TemplateInstance) {
			t.Errorf("after %d undone steps, the record is %+v, want %+v", steps+1, spec, complete)
		}
	}
	c.provision("shop", "other", http.StatusConflict)
	c.provision("elsewhere", "db", http.StatusConflict)
}

func TestRejectedOrderLeavesNoRecord(t *testing.T) {
	c := newCatalogue(t)
	for _, c.refused = range []string{"/secrets", "/templateinstances"} {
		c.provision("shop", "db", http.StatusForbidden)
		if record := c.record(); record != nil {
			t.Errorf("if %s are rejected, the record remains: %+v", c.refused, record)
		}
		// The record owned the Secret. Delete the Secret, as the garbage collector would.
		_ = c.kube.CoreV1().Secrets("shop").Delete(t.Context(), id, metav1.DeleteOptions{})
	}
	// An earlier request has created the record of this instance.
	c.refused = ""
	c.provision("shop", "db", http.StatusAccepted)
	if err := c.templates.TemplateV1().TemplateInstances("shop").Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.refused = "/templateinstances"
	c.provision("shop", "db", http.StatusForbidden)
	if c.record() == nil {
		t.Error("a repeated request deletes the record")
	}
}

func TestLastOperationDeletesOrphanedRecords(t *testing.T) {
	c := newCatalogue(t)
	c.ask(http.MethodDelete, "?accepts_incomplete=true", "", http.StatusGone)
	c.ask(http.MethodDelete, "/service_bindings/"+id, "", http.StatusGone)
	c.provision("shop", "db", http.StatusAccepted)
	c.ask(http.MethodDelete, "", "", http.StatusUnprocessableEntity)
	if err := c.templates.TemplateV1().TemplateInstances("shop").Delete(t.Context(), id, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if text := c.ask(http.MethodGet, "/last_operation?operation=provisioning", "", http.StatusOK); !strings.Contains(text, failed) {
		t.Errorf("progress of a deleted instance: %s", text)
	}
	c.ask(http.MethodDelete, "?accepts_incomplete=true", "", http.StatusOK)
	if record := c.record(); record != nil {
		t.Errorf("the record still exists: %+v", record)
	}
}

func TestBindNeedsReadyInstance(t *testing.T) {
	c := newCatalogue(t)
	c.provision("shop", "db", http.StatusAccepted)
	bind := func(service string, code int) string {
		t.Helper()
		return c.ask(http.MethodPut, "/service_bindings/"+id, fmt.Sprintf(`{"service_id": %q, "plan_id": %[1]q}`, service), code)
	}
	if text := bind(c.service, http.StatusUnprocessableEntity); !strings.Contains(text, "ConcurrencyError") {
		t.Errorf("a binding of an instance that is not ready returns %s", text)
	}
	bind("other", http.StatusBadRequest)
	instances := c.templates.TemplateV1().TemplateInstances("shop")
	instance, err := instances.Get(t.Context(), id, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	instance.Status.Conditions = []templatev1.TemplateInstanceCondition{{Type: templatev1.TemplateInstanceReady, Status: corev1.ConditionTrue}}
	// An object that has been recreated by another client exposes nothing.
	secret, err := c.kube.CoreV1().Secrets("shop").Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "db", Annotations: map[string]string{exposePrefix + "name": "{.metadata.name}"}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, seen := range []struct {
		uid  types.UID
		code int
		want string
	}{{"another", http.StatusBadRequest, ""}, {secret.UID, http.StatusCreated, "db"}} {
		reference := corev1.ObjectReference{APIVersion: "v1", Kind: "Secret", Namespace: "shop", Name: "db", UID: seen.uid}
		instance.Status.Objects = []templatev1.TemplateInstanceObject{{Ref: reference}}
		if instance, err = instances.UpdateStatus(t.Context(), instance, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		var resp binding
		if err := json.Unmarshal([]byte(bind(c.service, seen.code)), &resp); err != nil || resp.Credentials["name"] != seen.want {
			t.Errorf("credentials are %v, %v", resp, err)
		}
	}
	bind(c.service, http.StatusOK)
	if ids := c.record().Spec.BindingIDs; len(ids) != 1 || ids[0] != id {
		t.Errorf("bindings are %q", ids)
	}
}
