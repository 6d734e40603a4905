package user

import (
	"strings"
	"testing"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestMappingNamesExistingObjects(t *testing.T) {
	users, identities := userv1.Resource("users"), userv1.Resource("identities")
	m := &mapping{stores: map[schema.GroupResource]*registry.Store{
		users:      storetest.New(users, &userv1.UserList{}, &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: "alice"}}),
		identities: storetest.New(identities, &userv1.IdentityList{}, &userv1.Identity{ObjectMeta: metav1.ObjectMeta{Name: "ldap:alice"}}),
	}}
	for _, tt := range []struct {
		name, object, identity, user string
		want                         []string // the rejected fields
	}{
		{"both exist", "", "ldap:alice", "alice", nil},
		{"name of the identity", "ldap:alice", "ldap:alice", "alice", nil},
		{"other name", "alice", "ldap:alice", "alice", []string{"metadata.name"}},
		{"missing identity", "", "ldap:bob", "alice", []string{"identity.name"}},
		{"missing user", "", "ldap:alice", "bob", []string{"user.name"}},
		{"no names", "", "", "", []string{"identity.name", "user.name"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			identity, user, err := m.ends(t.Context(), &userv1.UserIdentityMapping{
				ObjectMeta: metav1.ObjectMeta{Name: tt.object}, Identity: corev1.ObjectReference{Name: tt.identity}, User: corev1.ObjectReference{Name: tt.user},
			})
			if len(tt.want) == 0 {
				if err != nil || identity.Name != tt.identity || user.Name != tt.user {
					t.Errorf("got %v, %v, error %v", identity, user, err)
				}
				return
			}
			if !apierrors.IsInvalid(err) {
				t.Fatalf("got error %v, want one of invalid fields", err)
			}
			for _, field := range tt.want {
				if !strings.Contains(err.Error(), field+": Invalid value") {
					t.Errorf("got error %v, want one of %s", err, field)
				}
			}
		})
	}
}

func TestUsersAreValidated(t *testing.T) {
	for _, tt := range []struct {
		name string
		user userv1.User
		want string // the field that is rejected, or ""
	}{
		{"identities", userv1.User{Identities: []string{"ldap:alice", "github:17"}}, ""},
		{"identity without a provider", userv1.User{Identities: []string{"ldap:alice", "alice"}}, "identities[1]"},
		{"identity with an empty provider", userv1.User{Identities: []string{":alice"}}, "identities[0]"},
		{"identity without a user", userv1.User{Identities: []string{"ldap:"}}, "identities[0]"},
		{"identity with a long name", userv1.User{Identities: []string{"ldap:" + strings.Repeat("a", 250)}}, "identities[0]"},
		{"groups", userv1.User{Groups: []string{"dev"}}, "groups"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			errs := validateUser(t.Context(), &tt.user, nil)
			if tt.want == "" && len(errs) > 0 || tt.want != "" && (len(errs) != 1 || errs[0].Field != tt.want) {
				t.Errorf("got %v, want an error at %q", errs, tt.want)
			}
		})
	}
}

func TestNewIdentitiesAreNamedByProviderAndUser(t *testing.T) {
	for _, tt := range []struct {
		name     string
		identity userv1.Identity
		old      *userv1.Identity
		want     string
	}{
		{"no name", userv1.Identity{ProviderName: "ldap", ProviderUserName: "alice"}, nil, "ldap:alice"},
		{"own name", userv1.Identity{ObjectMeta: metav1.ObjectMeta{Name: "x"}, ProviderName: "ldap", ProviderUserName: "alice"}, nil, "x"},
		{"an update keeps the name", userv1.Identity{ProviderName: "ldap", ProviderUserName: "alice"}, &userv1.Identity{}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if nameIdentity(t.Context(), &tt.identity, tt.old); tt.identity.Name != tt.want {
				t.Errorf("got %q, want %q", tt.identity.Name, tt.want)
			}
		})
	}
}
