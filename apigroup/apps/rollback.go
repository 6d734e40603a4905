package apps

import (
	"context"
	"fmt"
	"maps"

	appsv1 "github.com/openshift/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
	"github.com/slipway-platform/slipway/apiserver"
)

// rollback is the "rollback" subresource. It returns a configuration with the settings of an
// earlier deployment and stores nothing. The client then updates the configuration.
type rollback struct {
	apiserver.Action[*appsv1.DeploymentConfigRollback]
	deps apiserver.Deps
}

func newRollback(deps apiserver.Deps) *rollback {
	return &rollback{apiserver.Action[*appsv1.DeploymentConfigRollback]{Kind: appsv1.GroupVersion.WithKind("DeploymentConfigRollback")}, deps}
}

// Create returns the rolled-back configuration.
func (r *rollback) Create(ctx context.Context, name string, body runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	rollback, err := r.About(ctx, name, body, validate, func(b *appsv1.DeploymentConfigRollback) string { return b.Name })
	if err != nil {
		return nil, err
	}
	return r.rolledBackConfig(ctx, rollback)
}

// rollbacks is the deploymentconfigrollbacks resource, which older clients use. The request body
// contains the name of the configuration.
type rollbacks struct{ *rollback }

func newRollbacks(deps apiserver.Deps) (rest.Storage, error) {
	return &rollbacks{newRollback(deps)}, nil
}

// NamespaceScoped implements rest.Scoper.
func (*rollbacks) NamespaceScoped() bool { return true }

// GetSingularName implements rest.SingularNameProvider.
func (*rollbacks) GetSingularName() string { return "deploymentconfigrollback" }

// Create returns the rolled-back configuration.
func (r *rollbacks) Create(ctx context.Context, body runtime.Object, validate rest.ValidateObjectFunc, _ *metav1.CreateOptions) (runtime.Object, error) {
	rollback, ok := body.(*appsv1.DeploymentConfigRollback)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, must be a %s", body, r.Kind.Kind))
	}
	request, err := r.About(ctx, rollback.Name, body, validate, func(b *appsv1.DeploymentConfigRollback) string { return b.Name })
	if err != nil {
		return nil, err
	}
	return r.rolledBackConfig(ctx, request)
}

func (r *rollback) rolledBackConfig(ctx context.Context, rollback *appsv1.DeploymentConfigRollback) (runtime.Object, error) {
	if rollback.Name == "" {
		return nil, r.invalid(rollback, field.Required(field.NewPath("name"), "set the name of the deployment config"))
	}
	match, err := r.deps.Stores[appsv1.GroupVersion.WithResource("deploymentconfigs").GroupResource()].Get(ctx, rollback.Name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	dc := match.(*appsv1.DeploymentConfig).DeepCopy()
	if dc.Spec.Paused {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("cannot rollback the paused deployment config %q; resume it first: oc rollout resume dc/%[1]s", dc.Name))
	}
	deployment, err := r.target(dc, rollback)
	if err != nil {
		return nil, err
	}
	core := r.deps.Kube.CoreV1()
	rc, err := core.ReplicationControllers(request.NamespaceValue(ctx)).Get(ctx, deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && rollout.ConfigOf(rc) != dc.Name {
		return nil, r.invalid(rollback, field.Invalid(field.NewPath("spec", "from", "name"), deployment, "the deployment does not exist or does not belong to "+dc.Name))
	}
	if err != nil {
		return nil, err
	}
	to, err := rollout.Config(rc)
	if err != nil {
		return nil, err
	}
	return applyRollback(dc, to, rollback), nil
}

// target returns the name of the deployment to roll back to: the named deployment, the deployment
// of the requested revision, or the previous deployment.
func (r *rollback) target(dc *appsv1.DeploymentConfig, rollback *appsv1.DeploymentConfigRollback) (string, error) {
	revision, latest := rollback.Spec.Revision, dc.Status.LatestVersion
	name := rollback.Spec.From.Name
	switch {
	case latest == 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("cannot rollback the deployment config %q, which was never deployed", dc.Name))
	case name != "" && revision == 0:
	case revision == 0 && latest > 1:
		name = rollout.Name(dc.Name, latest-1)
	case revision <= 0:
		return "", apierrors.NewBadRequest(fmt.Sprintf("there is no deployment of %q before #%d", dc.Name, latest))
	default:
		name = rollout.Name(dc.Name, revision)
	}
	if name == rollout.Name(dc.Name, latest) {
		return "", r.invalid(rollback, field.Invalid(field.NewPath("spec", "revision"), latest, "the deployment is already the latest one"))
	}
	return name, nil
}

func (r *rollback) invalid(rollback *appsv1.DeploymentConfigRollback, fieldErr *field.Error) error {
	return apierrors.NewInvalid(appsv1.GroupVersion.WithKind(r.Kind.Kind).GroupKind(), rollback.Name, field.ErrorList{fieldErr})
}

// applyRollback copies the requested settings of an earlier deployment to a configuration. It
// disables automatic image triggers, because the next image would undo the rollback.
func applyRollback(dc, to *appsv1.DeploymentConfig, rollback *appsv1.DeploymentConfigRollback) *appsv1.DeploymentConfig {
	include := rollback.Spec
	if include.IncludeTemplate {
		dc.Spec.Template = to.Spec.Template
	}
	if include.IncludeTriggers {
		dc.Spec.Triggers = to.Spec.Triggers
	}
	if include.IncludeStrategy {
		dc.Spec.Strategy = to.Spec.Strategy
	}
	if include.IncludeReplicationMeta {
		dc.Spec.Replicas, dc.Spec.Selector = to.Spec.Replicas, to.Spec.Selector
	}
	for _, trigger := range dc.Spec.Triggers {
		if trigger.ImageChangeParams != nil {
			trigger.ImageChangeParams.Automatic = false
		}
	}
	if len(rollback.UpdatedAnnotations) > 0 {
		if dc.Annotations == nil {
			dc.Annotations = map[string]string{}
		}
		maps.Copy(dc.Annotations, rollback.UpdatedAnnotations)
	}
	return dc
}
