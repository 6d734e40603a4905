package describe

import (
	"fmt"
	"maps"
	"slices"

	templatev1 "github.com/openshift/api/template/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/slipway-platform/slipway/cli/objects"
)

// templateInstance writes a template instance, the objects that it created, and its parameters. For
// each parameter, it writes only the size of the value, because the values can be secret.
func templateInstance(p *page, t *templatev1.TemplateInstance) error {
	p.metadata(t.ObjectMeta)
	p.line("\nConditions:")
	for _, condition := range t.Status.Conditions {
		p.field("    Type", condition.Type)
		p.field("    Status", condition.Status)
		p.field("    LastTransitionTime", condition.LastTransitionTime.UTC().Format("2006-01-02 15:04:05 -0700 MST"))
		p.field("    Reason", condition.Reason)
		p.field("    Message", condition.Message)
		p.line("")
	}
	p.line("Objects:")
	for _, object := range t.Status.Objects {
		name := object.Ref.Name
		if object.Ref.Namespace != "" {
			name = object.Ref.Namespace + "/" + name
		}
		p.field("    "+object.Ref.Kind, name)
	}
	p.line("\nParameters:")
	if t.Spec.Secret == nil {
		return nil
	}
	secret, err := objects.Get[corev1.Secret](p.ctx, p.client, corev1.SchemeGroupVersion.WithResource("secrets"), t.Namespace, t.Spec.Secret.Name)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		p.line("    Secret %q cannot be read", t.Spec.Secret.Name)
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(secret.Data)) {
		p.field("    "+name, fmt.Sprintf("%d bytes", len(secret.Data[name])))
	}
	return nil
}
