package nodegroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/internal/nodegroup"
)

// PluginName is the admission plugin's name in the configuration.
const PluginName = "slipway.io/NodeGroup"

// Feature validates node group ConfigMaps. check validates the parts of a configuration that do not
// depend on the host.
func Feature(check func(content []byte) error) apiserver.Feature {
	return apiserver.Feature{Admission: []apiserver.Admission{{Name: PluginName, New: func(io.Reader) (admission.Interface, error) {
		return newGroups(check), nil
	}}}}
}

// groups is an admission plugin that protects node group ConfigMaps. Permission to write
// ConfigMaps, which a project role grants, is not sufficient, because a node group's ConfigMap
// changes hosts.
type groups struct {
	*admission.Handler
	check      func(content []byte) error
	authorizer authorizer.Authorizer
}

var (
	_ admission.ValidationInterface = &groups{}
	_ initializer.WantsAuthorizer   = &groups{}
)

func newGroups(check func([]byte) error) *groups {
	return &groups{Handler: admission.NewHandler(admission.Create, admission.Update, admission.Delete), check: check}
}

// SetAuthorizer stores the API server's authorizer.
func (g *groups) SetAuthorizer(a authorizer.Authorizer) { g.authorizer = a }

// ValidateInitialization returns an error if no authorizer is set.
func (g *groups) ValidateInitialization() error {
	if g.authorizer == nil {
		return fmt.Errorf("initialize admission plugin %s: no authorizer", PluginName)
	}
	return nil
}

// remover is the controller that deletes the contents of a deleted project. It may delete the
// project's node group ConfigMaps, even if the user who deleted the project may not change nodes.
// Nodes then keep their current configuration.
const remover = "system:serviceaccount:kube-system:namespace-controller"

// Validate rejects invalid configurations, and changes by users who may not change nodes.
func (g *groups) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	inProject := a.GetResource().GroupResource() == corev1.Resource("configmaps") && a.GetNamespace() == nodegroup.Namespace
	// Also check requests without a name, which delete a collection.
	if !inProject || a.GetName() != "" && !strings.HasPrefix(a.GetName(), nodegroup.Prefix) {
		return nil
	}
	if a.GetOperation() == admission.Delete && a.GetUserInfo().GetName() == remover {
		return nil
	}
	decision, _, err := g.authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: a.GetUserInfo(), Verb: "update", Resource: "nodes", APIVersion: "v1", ResourceRequest: true,
	})
	if err != nil || decision != authorizer.DecisionAllow {
		return admission.NewForbidden(a, errors.New("only a user who may update nodes can change the configuration of a node group"))
	}
	object, ok := a.GetObject().(*corev1.ConfigMap)
	if !ok {
		return nil // the request is a deletion
	}
	content, exists := object.Data[nodegroup.Key]
	if !exists {
		return admission.NewForbidden(a, fmt.Errorf("the ConfigMap of a node group needs the key %s with a NodeConfig", nodegroup.Key))
	}
	if err := g.check([]byte(content)); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}
