package user

import (
	"slices"
	"testing"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver"
	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestSelfIsUserOfRequest(t *testing.T) {
	existing := &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "1"}, FullName: "Alice A."}
	resource := userv1.Resource("users")
	s := &self{&apiserver.Store{Store: storetest.New(resource, &userv1.UserList{}, existing)}}
	for name, tt := range map[string]struct {
		as         user.Info
		object     string
		wantName   string // "" if an error is expected
		fullName   string
		wantGroups []string
	}{
		"stored user": {
			&user.DefaultInfo{Name: "alice", UID: "1", Groups: []string{"team", user.AllAuthenticated, "system:authenticated:oauth"}}, "~",
			"alice", "Alice A.", []string{"team"},
		},
		"user without a User object": {&user.DefaultInfo{Name: "bob", Groups: []string{"team"}}, "~", "bob", "", []string{"team"}},
		"system user":                {&user.DefaultInfo{Name: "system:admin", Groups: []string{"system:masters"}}, "~", "system:admin", "", []string{"system:masters"}},
		"request without a user":     {&user.DefaultInfo{}, "~", "", "", nil},
		"user by name":               {&user.DefaultInfo{Name: "bob"}, "alice", "alice", "Alice A.", nil},
		"missing user by name":       {&user.DefaultInfo{Name: "bob"}, "bob", "", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := s.Get(request.WithUser(t.Context(), tt.as), tt.object, &metav1.GetOptions{})
			if tt.wantName == "" {
				if err == nil {
					t.Fatalf("got %v, want an error", object)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := object.(*userv1.User)
			if got.Name != tt.wantName || got.FullName != tt.fullName || !slices.Equal(got.Groups, tt.wantGroups) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if len(existing.Groups) > 0 {
		t.Errorf("the stored user has the groups %v of a request", existing.Groups)
	}
}

func TestMappingNeedsReferencesInBothDirections(t *testing.T) {
	identity := func(name, userName, uid string) *userv1.Identity {
		return &userv1.Identity{
			ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: "5"},
			User:       corev1.ObjectReference{Name: userName, UID: types.UID(uid)},
		}
	}
	users, identities := userv1.Resource("users"), userv1.Resource("identities")
	m := &mapping{stores: map[schema.GroupResource]*registry.Store{
		users: storetest.New(users, &userv1.UserList{}, &userv1.User{
			ObjectMeta: metav1.ObjectMeta{Name: "alice", UID: "1"}, Identities: []string{"ldap:alice", "ldap:old"},
		}),
		identities: storetest.New(identities, &userv1.IdentityList{},
			identity("ldap:alice", "alice", "1"), identity("ldap:old", "alice", "0"), identity("ldap:other", "alice", "1"),
			identity("ldap:free", "", ""), identity("ldap:orphan", "bob", "2")),
	}}
	for name, tt := range map[string]struct {
		identity string
		mapped   bool
	}{
		"references in both directions":             {"ldap:alice", true},
		"identity of an earlier user with the name": {"ldap:old", false},
		"user does not list the identity":           {"ldap:other", false},
		"identity without a user":                   {"ldap:free", false},
		"identity of a deleted user":                {"ldap:orphan", false},
		"missing identity":                          {"ldap:none", false},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := m.Get(t.Context(), tt.identity, &metav1.GetOptions{})
			if !tt.mapped {
				if !apierrors.IsNotFound(err) {
					t.Errorf("got %v, %v, want not found", object, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := object.(*userv1.UserIdentityMapping); got.User.Name != "alice" || got.Identity.Name != tt.identity || got.ResourceVersion != "5" {
				t.Errorf("got %+v", got)
			}
		})
	}
}
