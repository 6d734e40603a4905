package ansible

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/slipway-platform/slipway/internal/osbserver"
)

// mayRun returns an error if a user lacks any of the permissions that a bundle has in a project.
// Without this check, users could use a bundle to exceed their own permissions.
func (b *broker) mayRun(ctx context.Context, u user.Info, project string) error {
	role, err := b.kube.RbacV1().ClusterRoles().Get(ctx, b.options.SandboxRole, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read bundle role, ansibleServiceBrokerConfig.sandboxRole: %w", err)
	}
	for i := range role.Rules {
		for _, attributes := range requests(&role.Rules[i]) {
			attributes.User, attributes.Namespace = u, project
			decision, _, err := b.authorizer.Authorize(ctx, attributes)
			if decision == authorizer.DecisionAllow {
				continue
			}
			if err != nil {
				return fmt.Errorf("check permission of %q: %w", u.GetName(), err)
			}
			return osbserver.Refuse(http.StatusForbidden, "user %q needs the permissions of the role %q in project %q: cannot %s %s", u.GetName(), role.Name,
				project, attributes.Verb, attributes.Resource)
		}
	}
	return nil
}

// requests returns the attributes of the requests that a rule allows in a project.
func requests(rule *rbacv1.PolicyRule) (all []authorizer.AttributesRecord) {
	names := rule.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range rule.Verbs {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				for _, name := range names {
					all = append(all, attributesOf(verb, group, resource, name))
				}
			}
		}
	}
	return all
}

// terminates reports whether a project is being deleted or does not exist.
func (b *broker) terminates(ctx context.Context, project string) (bool, error) {
	object, err := b.kube.CoreV1().Namespaces().Get(ctx, project, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("read project: %w", err)
	}
	return object.DeletionTimestamp != nil, nil
}

func attributesOf(verb, group, resource, name string) authorizer.AttributesRecord {
	attributes := authorizer.AttributesRecord{Verb: verb, APIGroup: group, APIVersion: "*", Name: name, ResourceRequest: true}
	attributes.Resource, attributes.Subresource, _ = strings.Cut(resource, "/")
	return attributes
}
