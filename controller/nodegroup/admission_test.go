package nodegroup

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// nodeAdmins allows the admin user to update nodes.
func nodeAdmins(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "admin" && a.GetVerb() == "update" && a.GetResource() == "nodes" && a.IsResourceRequest() {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func TestConfigurationOfGroupsIsChecked(t *testing.T) {
	plugin := newGroups(func(content []byte) error {
		if string(content) != "valid" {
			return errors.New("is not a NodeConfig")
		}
		return nil
	})
	plugin.SetAuthorizer(authorizer.AuthorizerFunc(nodeAdmins))
	if err := plugin.ValidateInitialization(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		user, namespace, name string
		operation             admission.Operation
		data                  map[string]string
		want                  string
	}{
		"administrator":              {"admin", "openshift-node", "node-config-infra", admission.Update, map[string]string{"node-config.yaml": "valid"}, ""},
		"editor of all projects":     {"edit", "openshift-node", "node-config-infra", admission.Update, map[string]string{"node-config.yaml": "valid"}, "may update nodes"},
		"new group":                  {"edit", "openshift-node", "node-config-own", admission.Create, map[string]string{"node-config.yaml": "valid"}, "may update nodes"},
		"deletion":                   {"edit", "openshift-node", "node-config-infra", admission.Delete, nil, "may update nodes"},
		"deletion of all":            {"edit", "openshift-node", "", admission.Delete, nil, "may update nodes"},
		"deletion by administrator":  {"admin", "openshift-node", "node-config-infra", admission.Delete, nil, ""},
		"deletion of the project":    {remover, "openshift-node", "", admission.Delete, nil, ""},
		"change by its remover":      {remover, "openshift-node", "node-config-infra", admission.Update, map[string]string{"node-config.yaml": "valid"}, "may update nodes"},
		"invalid configuration":      {"admin", "openshift-node", "node-config-infra", admission.Update, map[string]string{"node-config.yaml": "x"}, "is not a NodeConfig"},
		"ConfigMap without key":      {"admin", "openshift-node", "node-config-infra", admission.Create, nil, "needs the key node-config.yaml"},
		"other ConfigMap":            {"edit", "openshift-node", "kube-root-ca.crt", admission.Update, nil, ""},
		"ConfigMap of other project": {"edit", "shop", "node-config-infra", admission.Create, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var object, old runtime.Object
			configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace, Name: tt.name}, Data: tt.data}
			if object = configMap; tt.operation == admission.Delete {
				object, old = nil, configMap
			}
			err := plugin.Validate(t.Context(), admission.NewAttributesRecord(object, old, corev1.SchemeGroupVersion.WithKind("ConfigMap"),
				tt.namespace, tt.name, corev1.SchemeGroupVersion.WithResource("configmaps"), "", tt.operation, nil, false,
				&user.DefaultInfo{Name: tt.user}), nil)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error is %v, want %q", err, tt.want)
			}
		})
	}
}
