package user

import (
	"context"
	"fmt"
	"strings"

	userv1 "github.com/openshift/api/user/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/storage/names"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
)

// groups is the storage of the resource groups.user.openshift.io.
type groups struct {
	*genericregistry.Store
}

func newGroups(scheme *runtime.Scheme, getter generic.RESTOptionsGetter) (*groups, error) {
	strategy := groupStrategy{ObjectTyper: scheme, NameGenerator: names.SimpleNameGenerator}
	resource := userv1.Resource("groups")
	store := &genericregistry.Store{
		NewFunc:                   func() runtime.Object { return &userv1.Group{} },
		NewListFunc:               func() runtime.Object { return &userv1.GroupList{} },
		DefaultQualifiedResource:  resource,
		SingularQualifiedResource: userv1.Resource("group"),
		CreateStrategy:            strategy,
		UpdateStrategy:            strategy,
		DeleteStrategy:            strategy,
		TableConvertor:            groupTable{},
	}
	if err := store.CompleteWithOptions(&generic.StoreOptions{RESTOptions: getter}); err != nil {
		return nil, fmt.Errorf("store %s: %w", resource, err)
	}
	return &groups{store}, nil
}

// groupStrategy says what a valid group is.
type groupStrategy struct {
	runtime.ObjectTyper
	names.NameGenerator
}

var (
	_ rest.RESTCreateStrategy = groupStrategy{}
	_ rest.RESTUpdateStrategy = groupStrategy{}
)

func (groupStrategy) NamespaceScoped() bool                                            { return false }
func (groupStrategy) PrepareForCreate(context.Context, runtime.Object)                 {}
func (groupStrategy) PrepareForUpdate(_ context.Context, _, _ runtime.Object)          {}
func (groupStrategy) Canonicalize(runtime.Object)                                      {}
func (groupStrategy) AllowCreateOnUpdate(context.Context) bool                         { return false }
func (groupStrategy) AllowUnconditionalUpdate(context.Context) bool                    { return false }
func (groupStrategy) WarningsOnCreate(context.Context, runtime.Object) []string        { return nil }
func (groupStrategy) WarningsOnUpdate(_ context.Context, _, _ runtime.Object) []string { return nil }

func (groupStrategy) Validate(_ context.Context, obj runtime.Object) field.ErrorList {
	return validateGroup(obj.(*userv1.Group))
}

func (groupStrategy) ValidateUpdate(_ context.Context, obj, old runtime.Object) field.ErrorList {
	group, previous := obj.(*userv1.Group), old.(*userv1.Group)
	problems := apivalidation.ValidateObjectMetaUpdate(&group.ObjectMeta, &previous.ObjectMeta, field.NewPath("metadata"))
	return append(problems, validateGroup(group)...)
}

// validateGroup refuses names that RBAC could not tell from something else. As in OpenShift 3 a
// group's name may hold ":" only where it is not the reserved prefix "system:", and a user's name may
// not be a path.
func validateGroup(group *userv1.Group) field.ErrorList {
	problems := apivalidation.ValidateObjectMeta(&group.ObjectMeta, false, groupName, field.NewPath("metadata"))
	seen := map[string]bool{}
	for i, user := range group.Users {
		at := field.NewPath("users").Index(i)
		switch reasons := userName(user); {
		case user == "":
			problems = append(problems, field.Required(at, "name a user"))
		case len(reasons) > 0:
			problems = append(problems, field.Invalid(at, user, strings.Join(reasons, "; ")))
		case seen[user]:
			problems = append(problems, field.Duplicate(at, user))
		}
		seen[user] = true
	}
	return problems
}

func groupName(name string, prefix bool) []string {
	reasons := path.ValidatePathSegmentName(name, prefix)
	if strings.HasPrefix(name, "system:") {
		reasons = append(reasons, `must not begin with "system:": those groups are virtual`)
	}
	if name == "~" {
		reasons = append(reasons, `must not be "~"`)
	}
	return reasons
}

func userName(name string) []string {
	reasons := path.ValidatePathSegmentName(name, false)
	if name == "~" {
		reasons = append(reasons, `must not be "~"`)
	}
	return reasons
}

// groupTable prints what `oc get groups` prints in OpenShift 3: NAME and USERS.
type groupTable struct{}

func (groupTable) ConvertToTable(_ context.Context, object, _ runtime.Object) (*metav1.Table, error) {
	table := &metav1.Table{ColumnDefinitions: []metav1.TableColumnDefinition{
		{Name: "Name", Type: "string", Format: "name", Description: "Name of the group"},
		{Name: "Users", Type: "string", Description: "Users in the group"},
	}}
	row := func(group *userv1.Group) {
		table.Rows = append(table.Rows, metav1.TableRow{
			Cells:  []any{group.Name, strings.Join(group.Users, ", ")},
			Object: runtime.RawExtension{Object: group},
		})
	}
	switch found := object.(type) {
	case *userv1.Group:
		table.ResourceVersion = found.ResourceVersion
		row(found)
	case *userv1.GroupList:
		table.ResourceVersion, table.Continue = found.ResourceVersion, found.Continue
		table.RemainingItemCount = found.RemainingItemCount
		for i := range found.Items {
			row(&found.Items[i])
		}
	default:
		return nil, fmt.Errorf("print %T: not a group", object)
	}
	return table, nil
}
