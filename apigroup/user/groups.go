package user

import (
	"context"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apiserver"
)

// groups returns the groups.user.openshift.io resource. Its table contains the columns of `oc get
// groups` in OpenShift 3.
func groups() apiserver.Served {
	return apiserver.Resource[*userv1.Group]{
		Plural:    "groups",
		ValidName: groupName,
		Validate:  validateGroup,
		Columns: []apiserver.Column[*userv1.Group]{
			{Name: "Users", Description: "Users in the group", Value: func(group *userv1.Group) any {
				return strings.Join(group.Users, ", ")
			}},
		},
	}
}

// validateGroup rejects invalid and duplicate user names.
func validateGroup(_ context.Context, group, _ *userv1.Group) (errs field.ErrorList) {
	seen := map[string]bool{}
	for i, user := range group.Users {
		at := field.NewPath("users").Index(i)
		switch reasons := userName(user, false); {
		case user == "":
			errs = append(errs, field.Required(at, "name a user"))
		case len(reasons) > 0:
			errs = append(errs, field.Invalid(at, user, strings.Join(reasons, "; ")))
		case seen[user]:
			errs = append(errs, field.Duplicate(at, user))
		}
		seen[user] = true
	}
	return errs
}
