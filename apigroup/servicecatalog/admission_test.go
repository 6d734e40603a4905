package servicecatalog

import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apigroup/servicecatalog/v1beta1"
)

// TestBrokerRequiresPermissionToReadItsSecret checks which users can cause the catalog to read a
// secret.
func TestBrokerRequiresPermissionToReadItsSecret(t *testing.T) {
	plugin := newBrokerAuth()
	if plugin.ValidateInitialization() == nil {
		t.Error("the plugin starts without an authorizer")
	}
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetVerb()+" "+a.GetResource()+" "+a.GetNamespace()+"/"+a.GetName() == "get secrets shop/mine" && a.GetUser().GetName() == "alice" {
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionNoOpinion, "no role", nil
	}))
	cluster := func(namespace, name string) runtime.Object {
		broker := &v1beta1.ClusterServiceBroker{}
		broker.Spec.AuthInfo = &v1beta1.ClusterServiceBrokerAuthInfo{
			Basic: &v1beta1.ClusterAuthConfig{SecretRef: &v1beta1.ObjectReference{Namespace: namespace, Name: name}},
		}
		return broker
	}
	local := func(name string) runtime.Object {
		broker := &v1beta1.ServiceBroker{ObjectMeta: metav1.ObjectMeta{Namespace: "shop"}}
		broker.Spec.AuthInfo = &v1beta1.ServiceBrokerAuthInfo{Bearer: &v1beta1.AuthConfig{SecretRef: &v1beta1.LocalObjectReference{Name: name}}}
		return broker
	}
	tests := map[string]struct {
		object             runtime.Object
		resource, userName string
		allowed            bool
	}{
		"own secret":                           {cluster("shop", "mine"), "clusterservicebrokers", "alice", true},
		"of another namespace":                 {cluster("kube-system", "mine"), "clusterservicebrokers", "alice", false},
		"of another user":                      {cluster("shop", "mine"), "clusterservicebrokers", "bob", false},
		"own secret, in a project":             {local("mine"), "servicebrokers", "alice", true},
		"secret of another user, in a project": {local("other"), "servicebrokers", "alice", false},
		"broker without secrets":               {&v1beta1.ClusterServiceBroker{}, "clusterservicebrokers", "bob", true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			namespace := ""
			if tt.resource == "servicebrokers" {
				namespace = "shop"
			}
			attributes := admission.NewAttributesRecord(tt.object, nil, v1beta1.GroupVersion().WithKind("Broker"), namespace, "broker",
				v1beta1.GroupVersion().WithResource(tt.resource), "", admission.Create, nil, false, &user.DefaultInfo{Name: tt.userName})
			err := plugin.Validate(t.Context(), attributes, nil)
			if (err == nil) != tt.allowed || err != nil && !strings.Contains(err.Error(), "may not get secret") {
				t.Errorf("error %v, want allowed: %t", err, tt.allowed)
			}
		})
	}
}

// Searching for the ID of a new instance would require reading all instances.
func TestCreatedIDIsNotSearched(t *testing.T) {
	instance := &v1beta1.ServiceInstance{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "db", UID: "17"}}
	prepareInstance(t.Context(), instance, nil)
	plugin := newUniqueID(&catalog{}) // an empty catalog cannot search for IDs
	validate := func() error {
		return plugin.Validate(t.Context(), admission.NewAttributesRecord(instance, nil, v1beta1.GroupVersion().WithKind("ServiceInstance"), "shop", "db",
			v1beta1.GroupVersion().WithResource("serviceinstances"), "", admission.Create, nil, false, &user.DefaultInfo{Name: "alice"}), nil)
	}
	if err := validate(); err != nil || instance.Spec.ExternalID != "17" {
		t.Errorf("ID %q: %v", instance.Spec.ExternalID, err)
	}
	instance.Spec.ExternalID = "18"
	if validate() == nil {
		t.Error("the ID of a user is not searched")
	}
}
