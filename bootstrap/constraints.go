package bootstrap

import (
	"context"
	"fmt"

	securityv1 "github.com/openshift/api/security/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
)

// infrastructure is the namespace of the platform's service accounts.
const infrastructure = "openshift-infra"

// createConstraints creates missing default security context constraints. It does not change
// existing constraints; `oc adm policy reconcile-sccs` restores their defaults.
func createConstraints(ctx context.Context, client dynamic.Interface) error {
	resource := client.Resource(securityv1.GroupVersion.WithResource("securitycontextconstraints"))
	list, err := resource.List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list security context constraints: %w", err)
	}
	exists := map[string]bool{}
	for i := range list.Items {
		exists[list.Items[i].GetName()] = true
	}
	for _, c := range scc.BuiltIn(infrastructure) {
		if exists[c.Name] {
			continue
		}
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(c)
		if err != nil {
			return fmt.Errorf("convert security context constraints %q: %w", c.Name, err)
		}
		_, err = resource.Create(ctx, &unstructured.Unstructured{Object: object}, metav1.CreateOptions{FieldManager: manager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create security context constraints %q: %w", c.Name, err)
		}
	}
	return nil
}
