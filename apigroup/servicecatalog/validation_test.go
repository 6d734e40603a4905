package servicecatalog

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// check verifies that one of the errors contains the expected text. An empty text means that no
// error is expected.
func check(t *testing.T, content string, errs field.ErrorList, want string) {
	t.Helper()
	if text := fmt.Sprint(errs); want == "" && len(errs) > 0 || !strings.Contains(text, want) {
		t.Errorf("%s: %s, want %q", content, text, want)
	}
}

func decode(t *testing.T, content string, into any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(content), into); err != nil {
		t.Fatalf("%s: %v", content, err)
	}
}

func TestBrokersAreValidated(t *testing.T) {
	for content, want := range map[string]string{
		`{url: "https://broker.example.com/path", relistBehavior: Manual}`:                                                          "",
		`{url: "http://a", relistBehavior: Duration, relistDuration: 1m, authInfo: {bearer: {secretRef: {namespace: a, name: b}}}}`: "",
		`{relistBehavior: Manual}`:                                                                           "spec.url: Required",
		`{url: "ftp://a", relistBehavior: Manual}`:                                                           "must be a URL such as",
		`{url: "http://user:secret@a", relistBehavior: Manual}`:                                              "http://user:xxxxx@a",
		`{url: "http://a?b=c", relistBehavior: Manual}`:                                                      "neither a query",
		`{url: "http://a", relistBehavior: Sometimes}`:                                                       "supported values",
		`{url: "http://a", relistBehavior: Duration, relistDuration: -1s}`:                                   "greater than zero",
		`{url: "http://a", relistBehavior: Manual, relistRequests: -1}`:                                      "must not be negative",
		`{url: "http://a", relistBehavior: Manual, caBundle: YQ==}`:                                          "PEM",
		`{url: "http://a", relistBehavior: Manual, authInfo: {}}`:                                            "exactly one of basic and bearer",
		`{url: "http://a", relistBehavior: Manual, authInfo: {basic: {}}}`:                                   "name the secret",
		`{url: "http://a", relistBehavior: Manual, catalogRestrictions: {serviceClass: ["spec.free=true"]}}`: "supported values",
		`{url: "http://a", relistBehavior: Manual, catalogRestrictions: {servicePlan: ["in in in"]}}`:        "must be a requirement",
		`{url: "http://a", relistBehavior: Manual, catalogRestrictions: {servicePlan: ["spec.free=true"]}}`:  "",
	} {
		broker := &v1beta1.ClusterServiceBroker{}
		decode(t, content, &broker.Spec)
		errs := validateBroker(&broker.Spec.CommonServiceBrokerSpec, nil, clusterClassRequirements(), clusterPlanRequirements())
		if auth := broker.Spec.AuthInfo; auth != nil {
			errs = append(errs, validateClusterAuth(auth, field.NewPath("spec", "authInfo"))...)
		}
		check(t, content, errs, want)
	}
	spec := v1beta1.CommonServiceBrokerSpec{URL: "http://a", RelistBehavior: v1beta1.RelistBehaviorManual, RelistRequests: 1}
	old := spec
	old.RelistRequests = 2
	check(t, "fewer requests", validateBroker(&spec, &old, nil, nil), "must not be less")
}

func TestInstancesAreValidated(t *testing.T) {
	for content, want := range map[string]string{
		`{clusterServiceClassExternalName: a, clusterServicePlanExternalName: b}`: "",
		`{serviceClassName: a, servicePlanName: b}`:                               "",
		`{}`:                                   "name the class and the plan",
		`{clusterServiceClassExternalName: a}`: "name the plan",
		`{clusterServicePlanName: a}`:          "clusterServicePlanName needs it",
		`{clusterServiceClassName: a, clusterServicePlanName: b, serviceClassName: a, servicePlanName: b}`: "already named by clusterServiceClassName",
		`{serviceClassName: a, servicePlanName: b, parameters: [1]}`:                                       "must be an object",
		`{serviceClassName: a, servicePlanName: b, parametersFrom: [{}]}`:                                  "name the secret and its key",
		`{serviceClassName: a, servicePlanName: b, parametersFrom: [{secretKeyRef: {name: a}}]}`:           "name the key",
	} {
		instance := &v1beta1.ServiceInstance{}
		decode(t, content, &instance.Spec)
		check(t, content, validateInstance(t.Context(), instance, nil), want)
	}
}

func TestChangesOfInstances(t *testing.T) {
	as := func(name string) context.Context {
		return request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: []string{"g"}})
	}
	old := &v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{UID: "17"}}
	decode(t, `{clusterServiceClassExternalName: a, clusterServicePlanExternalName: b, userInfo: {username: mallory}, clusterServiceClassRef: {name: forged}}`, &old.Spec)
	prepareInstance(as("alice"), old, nil)
	if spec := old.Spec; spec.UserInfo.Username != "alice" || spec.ClusterServiceClassRef != nil || spec.ExternalID == "" || old.Finalizers[0] != v1beta1.Finalizer {
		t.Errorf("the new instance is %+v", old)
	}
	old.Spec.ClusterServiceClassRef, old.Spec.ClusterServicePlanRef = &v1beta1.ClusterObjectReference{Name: "c"}, &v1beta1.ClusterObjectReference{Name: "p"}
	tests := map[string]struct {
		change   func(*v1beta1.ServiceInstance)
		busy     bool
		want     string
		wantUser string
		wantPlan bool
	}{
		"label":                {func(i *v1beta1.ServiceInstance) { i.Labels = map[string]string{"a": "b"} }, true, "", "alice", true},
		"plan":                 {func(i *v1beta1.ServiceInstance) { i.Spec.ClusterServicePlanExternalName = "c" }, false, "", "bob", false},
		"plan while busy":      {func(i *v1beta1.ServiceInstance) { i.Spec.ClusterServicePlanExternalName = "c" }, true, "Another update", "bob", false},
		"class":                {func(i *v1beta1.ServiceInstance) { i.Spec.ClusterServiceClassExternalName = "c" }, false, "immutable", "bob", false},
		"ID":                   {func(i *v1beta1.ServiceInstance) { i.Spec.ExternalID = "c" }, false, "immutable", "bob", true},
		"user":                 {func(i *v1beta1.ServiceInstance) { i.Spec.UserInfo = nil }, false, "", "alice", true},
		"references":           {func(i *v1beta1.ServiceInstance) { i.Spec.ClusterServicePlanRef = nil }, false, "", "alice", true},
		"more update requests": {func(i *v1beta1.ServiceInstance) { i.Spec.UpdateRequests++ }, false, "", "bob", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			previous, changed := old.DeepCopy(), old.DeepCopy()
			if tt.busy {
				previous.Status.CurrentOperation = v1beta1.OperationUpdate
			}
			tt.change(changed)
			prepareInstance(as("bob"), changed, previous)
			check(t, name, validateInstance(t.Context(), changed, previous), tt.want)
			if changed.Spec.UserInfo.Username != tt.wantUser || (changed.Spec.ClusterServicePlanRef != nil) != tt.wantPlan {
				t.Errorf("the user is %q, the plan %v", changed.Spec.UserInfo.Username, changed.Spec.ClusterServicePlanRef)
			}
		})
	}
}

func TestBindingsAreValidated(t *testing.T) {
	for content, want := range map[string]string{
		`{instanceRef: {name: a}}`: "",
		`{}`:                       "spec.instanceRef.name: Required",
		`{instanceRef: {name: a}, secretName: A_B}`:                                                             "spec.secretName",
		`{instanceRef: {name: a}, secretTransforms: [{}]}`:                                                      "exactly one of renameKey",
		`{instanceRef: {name: a}, secretTransforms: [{renameKey: {from: a, to: b}, removeKey: {key: c}}]}`:      "exactly one of renameKey",
		`{instanceRef: {name: a}, secretTransforms: [{addKey: {key: a}}]}`:                                      "exactly one of value",
		`{instanceRef: {name: a}, secretTransforms: [{addKey: {key: a, stringValue: b}}]}`:                      "",
		`{instanceRef: {name: a}, secretTransforms: [{addKeysFrom: {secretRef: {namespace: other, name: b}}}]}`: "must be the namespace of the binding",
	} {
		binding := &v1beta1.ServiceBinding{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "b"}}
		decode(t, content, &binding.Spec)
		prepareBinding(t.Context(), binding, nil)
		check(t, content, validateBinding(t.Context(), binding, nil), want)
		changed := binding.DeepCopy()
		changed.Spec.SecretName, changed.Spec.ExternalID = "", ""
		prepareBinding(t.Context(), changed, binding)
		if want == "" {
			check(t, content+" again", validateBinding(t.Context(), changed, binding), "")
		}
		changed.Spec.InstanceRef.Name = "other"
		check(t, content+" of another instance", validateBinding(t.Context(), changed, binding), "immutable")
	}
}
