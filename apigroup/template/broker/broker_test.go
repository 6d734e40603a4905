package broker

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

func TestTemplatesAreOfferedAsServices(t *testing.T) {
	template := &templatev1.Template{
		ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "1", Annotations: map[string]string{
			"description": "A database", "tags": "sql, ,instant-app", "iconClass": "icon-db", "openshift.io/display-name": "Database",
			"openshift.io/support-url": "https://new", "template.openshift.io/support-url": "https://old", "template.openshift.io/documentation-url": "https://docs",
		}},
		Parameters: []templatev1.Parameter{
			{Name: "USER", DisplayName: "User", Description: "Who", Value: "admin", Required: true},
			{Name: "PASSWORD", Generate: "expression", From: "[a-z]{8}", Required: true},
		},
	}
	svc := serviceOf(template)
	want := service{
		ID: "1", Name: "db", Description: "A database", Tags: []string{"sql", "instant-app"}, Bindable: true,
		Metadata: map[string]string{
			"displayName": "Database", "supportUrl": "https://new", "documentationUrl": "https://docs", "console.openshift.io/iconClass": "icon-db",
		},
		Plans: svc.Plans,
	}
	if diff := cmp.Diff(want, svc); diff != "" {
		t.Errorf("service (-want +got):\n%s", diff)
	}
	data, err := json.Marshal(svc.Plans)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		`[{"id":"1","name":"default","description":"Default plan","free":true,"bindable":true,`,
		`"metadata":{"schemas":{"service_instance":{"create":{"openshift_form_definition":["USER","PASSWORD","customLabelParam"]}}}}`,
		`"schemas":{"service_instance":{"create":{"parameters":{"$schema":"http://json-schema.org/draft-04/schema","type":"object","properties":{"PASSWORD":{"type":"string"},"USER":{"type":"string","title":"User","description":"Who","default":"admin"},`,
		`"required":["USER"]}}},"service_binding":{"create":{"parameters":{"$schema":"http://json-schema.org/draft-04/schema","type":"object"}}}`,
	} {
		if !strings.Contains(string(data), part) {
			t.Errorf("plan lacks %s:\n%s", part, data)
		}
	}
	template.Annotations = map[string]string{bindableAnnotation: "False"}
	if service := serviceOf(template); service.Bindable || service.Plans[0].Bindable || service.Description != "No description provided." || service.Tags != nil {
		t.Errorf("a template with few annotations is %+v", service)
	}
}

func TestCustomLabels(t *testing.T) {
	template := &templatev1.Template{}
	label(template, " tier = web, shop ,, team=red team,=x")
	if diff := cmp.Diff(map[string]string{"tier": "web", "shop": "", "team": "red_team"}, template.ObjectLabels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
}

func TestOriginatorIsUserOfPlatform(t *testing.T) {
	named := func(text string) string { return "Kubernetes " + base64.StdEncoding.EncodeToString([]byte(text)) }
	b := &broker{authorizer: authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		query := strings.Join([]string{a.GetUser().GetName(), a.GetVerb(), a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetName()}, " ")
		if slices.Contains([]string{
			"catalog impersonate  groups  dev", "catalog impersonate  users  system:serviceaccount:shop:deployer",
			"catalog impersonate authentication.k8s.io userextras level gold",
		}, query) {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "", nil
	})}
	for header, want := range map[string]string{
		"": "catalog [platforms] map[]",
		named(`{"username": "duke", "uid": "7", "groups": ["dev", "system:authenticated"], "extra": {"level": ["gold"]}}`): "duke [dev system:authenticated] map[level:[gold]]",
		named(`{"username": "duke", "extra": {"scopes.authorization.openshift.io": ["user:info"]}}`):                       "duke [] map[scopes",
		named(`{"username": "duke", "extra": {"level": ["gold", "root"]}}`):                                                `may not impersonate userextras "root"`,
		named(`{"username": "duke", "groups": ["system:authenticated", "system:masters"]}`):                                `may not impersonate groups "system:masters"`,
		named(`{"username": "duke", "groups": ["platforms"]}`):                                                             `may not impersonate groups "platforms"`,
		named(`{"username": "catalog", "groups": ["platforms"]}`):                                                          "catalog [platforms] map[]",
		named(`{"username": "system:admin"}`):                                                                              `may not impersonate users "system:admin"`,
		named(`{"username": "system:serviceaccount:shop:deployer"}`):                                                       "system:serviceaccount:shop:deployer [] map[]",
		named(`{"groups": ["system:masters"]}`):                                                                            "has no user",
		named(`{"username": 1}`):                                                                                           "read header",
		"kubernetes !":                                                                                                     "read header",
		"cloudfoundry " + named(`{}`):                                                                                      `for the platform "cloudfoundry"`,
		`kubernetes`:                                                                                                       "read header",
	} {
		r := httptest.NewRequest(http.MethodGet, Root, nil)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "catalog", Groups: []string{"platforms"}}))
		r.Header.Set(osbserver.IdentityHeader, header)
		got := ""
		if info, err := osbserver.Originator(r, b.authorizer); err != nil {
			got = err.Error()
		} else {
			got = fmt.Sprint(info.GetName(), " ", info.GetGroups(), " ", info.GetExtra())
		}
		if !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
}

func TestBrokerRejectsInvalidRequests(t *testing.T) {
	b := &broker{}
	newPut := func(path, headers, body string) (*http.Request, func(*http.Request) (osbserver.Response, error)) {
		r := httptest.NewRequest(http.MethodPut, "/"+path, strings.NewReader(body))
		for header := range strings.SplitSeq(headers, "; ") {
			key, value, _ := strings.Cut(header, "=")
			r.Header.Set(key, value)
		}
		r.SetPathValue("instance", strings.TrimSuffix(path, "?accepts_incomplete=true"))
		return r, b.provision
	}
	const good = "X-Broker-API-Version=2.13; Content-Type=application/json"
	const body = `{"service_id": "s", "plan_id": "s", "context": {"platform": "kubernetes", "namespace": "shop"}}`
	for name, tt := range map[string]struct {
		path, headers, body string
		code                int
		want                string
	}{
		"no version":  {id, "Content-Type=application/json", body, 412, "must be 2.7 or a later 2.x"},
		"old version": {id, "X-Broker-API-Version=2.6; Content-Type=application/json", body, 412, `is \"2.6\"`},
		"new version": {id, "X-Broker-API-Version=3.0; Content-Type=application/json", body, 412, `is \"3.0\"`},
		"type":        {id, "X-Broker-API-Version=2.13; Content-Type=text/plain", body, 415, "must be application/json"},
		"identity":    {"instance", good, body, 400, "not a UUID in lower case"},
		"upper case":  {strings.ToUpper(id), good, body, 400, "not a UUID in lower case"},
		"body":        {id, good, "{", 400, "read body"},
		"number":      {id, good, `{"parameters": {"PORT": 80}}`, 400, "parameters"},
		"large":       {id, good, `{"parameters": {"A": "` + strings.Repeat("a", osbserver.MaxBodyBytes) + `"}}`, 400, "too large"},
		"plan":        {id, good, strings.Replace(body, `"plan_id": "s"`, `"plan_id": "p"`, 1), 400, "has one plan"},
		"platform":    {id, good, strings.Replace(body, "kubernetes", "cloudfoundry", 1), 400, "must be kubernetes"},
		"namespace":   {id, good, strings.Replace(body, "shop", "../shop", 1), 400, "context.namespace"},
		"synchronous": {id, good, body, 422, `{"error":"AsyncRequired"`},
		"nobody":      {id + "?accepts_incomplete=true", good, body, 401, "no user"},
	} {
		w := httptest.NewRecorder()
		r, response := newPut(tt.path, tt.headers, tt.body)
		osbserver.Serve(w, r, response)
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.want) || w.Header().Get(osbserver.VersionHeader) != osbserver.APIVersion {
			t.Errorf("%s: %d %s, want %d and %q", name, w.Code, w.Body, tt.code, tt.want)
		}
	}
}

func TestErrorsHaveBrokerCodes(t *testing.T) {
	resource := schema.GroupResource{Resource: "things"}
	for want, err := range map[string]error{
		"403 ":                 apierrors.NewForbidden(resource, "a", nil),
		"400 ":                 fmt.Errorf("read: %w", apierrors.NewNotFound(resource, "a")),
		"422 ConcurrencyError": apierrors.NewConflict(resource, "a", nil),
		"429 ":                 apierrors.NewTooManyRequests("later", 1),
		"409 ":                 fmt.Errorf("make: %w", osbserver.Refuse(http.StatusConflict, "other")),
		"500 ":                 fmt.Errorf("broken"),
	} {
		code, kind := osbserver.Code(err)
		if got := fmt.Sprintf("%d %s", code, kind); got != want {
			t.Errorf("%v: %q, want %q", err, got, want)
		}
	}
}

func TestProgressFollowsInstance(t *testing.T) {
	with := func(of templatev1.TemplateInstanceConditionType, status corev1.ConditionStatus) *templatev1.TemplateInstance {
		conditions := []templatev1.TemplateInstanceCondition{{Type: of, Status: status, Message: "why"}}
		return &templatev1.TemplateInstance{Status: templatev1.TemplateInstanceStatus{Conditions: conditions}}
	}
	got := []operationState{
		progress(nil), progress(&templatev1.TemplateInstance{}), progress(with(templatev1.TemplateInstanceReady, "False")),
		progress(with(templatev1.TemplateInstanceReady, "True")), progress(with(templatev1.TemplateInstanceInstantiateFailure, "True")),
	}
	want := []operationState{{failed, "the template instance was deleted"}, {State: inProgress}, {State: inProgress}, {State: succeeded}, {failed, "why"}}
	if !slices.Equal(got, want) {
		t.Errorf("progress is %v, want %v", got, want)
	}
}
