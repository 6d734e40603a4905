package mapping

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/idp"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

func user(name string, identities ...string) *userv1.User {
	return &userv1.User{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-of-user"}, Identities: identities}
}

func identity(name, user string) *userv1.Identity {
	return &userv1.Identity{ObjectMeta: metav1.ObjectMeta{Name: name}, User: corev1.ObjectReference{Name: user, UID: "uid-of-user"}}
}

func mapper(users []*userv1.User, identities ...*userv1.Identity) (*Mapper, *storetest.Objects[*userv1.User], *storetest.Objects[*userv1.Identity]) {
	u := storetest.New(userv1.Resource("users"), users...)
	i := storetest.New(userv1.Resource("identities"), identities...)
	return &Mapper{Users: u, Identities: i}, u, i
}

func TestMethodsFindUsers(t *testing.T) {
	free, mapped, foreign := user("alice"), user("alice", "ldap:alice"), user("alice", "other:alice")
	tests := []struct {
		name   string
		method Method
		before *userv1.User
		want   string // user name, or "" if an error is expected
		err    error
	}{
		{"claim a new name", Claim, nil, "alice", nil},
		{"claim a user without identity", Claim, free, "alice", nil},
		{"claim after an interruption", Claim, mapped, "alice", nil},
		{"claim the name of another identity", Claim, foreign, "", ErrClaim},
		{"lookup creates no user", Lookup, nil, "", ErrLookup},
		{"lookup claims no user", Lookup, free, "", ErrLookup},
		{"generate a new name", Generate, nil, "alice", nil},
		{"generate a name that is taken", Generate, foreign, "alice2", nil},
		{"add a new name", Add, nil, "alice", nil},
		{"add to the user of another identity", Add, foreign, "alice", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var users []*userv1.User
			if tt.before != nil {
				users = append(users, tt.before)
			}
			m, _, identities := mapper(users)
			identity := &idp.Identity{UserName: "alice", Name: "Alice A."}
			got, err := m.User(t.Context(), "ldap", tt.method, identity)
			if !errors.Is(err, tt.err) || (err == nil) != (tt.want != "") {
				t.Fatalf("error %v, want %v", err, tt.err)
			}
			if tt.want == "" {
				if len(identities.All()) > 0 {
					t.Error("an identity was created")
				}
				return
			}
			user, err := m.User(t.Context(), "ldap", Lookup, identity)
			if err != nil || got.Name != tt.want || user.UID != got.UID {
				t.Errorf("user %q, want %q; at the second login %v, %v", got.Name, tt.want, user, err)
			}
		})
	}
}

func TestIdentitiesAndUsersMustAgree(t *testing.T) {
	other := identity("ldap:alice", "alice")
	other.User.UID = "another-uid"
	tests := []struct {
		name     string
		users    []*userv1.User
		identity *userv1.Identity
	}{
		{"the identity has no user", nil, &userv1.Identity{ObjectMeta: metav1.ObjectMeta{Name: "ldap:alice"}}},
		{"the user was deleted", nil, identity("ldap:alice", "alice")},
		{"the user was recreated", []*userv1.User{user("alice", "ldap:alice")}, other},
		{"the user does not list the identity", []*userv1.User{user("alice")}, identity("ldap:alice", "alice")},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, method := range Methods() {
				m, _, _ := mapper(tt.users, tt.identity)
				if got, err := m.User(t.Context(), "ldap", method, &idp.Identity{UserName: "alice"}); !errors.Is(err, ErrLookup) {
					t.Errorf("%s: %v, %v", method, got, err)
				}
			}
		})
	}
}

func TestConcurrentFirstLoginsCreateOneUser(t *testing.T) {
	m, users, identities := mapper(nil)
	var group sync.WaitGroup
	for range 10 {
		group.Go(func() {
			if _, err := m.User(t.Context(), "ldap", Claim, &idp.Identity{UserName: "alice"}); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if len(users.All()) != 1 || len(identities.All()) != 1 {
		t.Errorf("%d users, %d identities", len(users.All()), len(identities.All()))
	}
}

func TestInterruptedLoginIsCompleted(t *testing.T) {
	m, users, identities := mapper(nil)
	identities.Fail = func(string, string) error { return errors.New("killed") }
	identity := &idp.Identity{UserName: "4711", PreferredUserName: "alice", Name: "Alice A.", Email: "a@example.com"}
	if _, err := m.User(t.Context(), "ldap", Claim, identity); err == nil {
		t.Fatal("the login was not interrupted")
	}
	identities.Fail = nil
	got, err := m.User(t.Context(), "ldap", Claim, identity)
	if err != nil || got.FullName != "Alice A." || len(users.All()) != 1 {
		t.Fatalf("%v, %v, %d users", got, err, len(users.All()))
	}
	result, err := m.Identities.Get(t.Context(), "ldap:4711")
	if err != nil || result.ProviderName != "ldap" || result.ProviderUserName != "4711" || result.User.UID != got.UID {
		t.Errorf("identity %+v, %v", result, err)
	}
	want := map[string]string{"name": "Alice A.", "email": "a@example.com", "preferred_username": "alice"}
	if diff := cmp.Diff(want, result.Extra); diff != "" {
		t.Errorf("extra (-want +got):\n%s", diff)
	}
}

func TestIdentityNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, name := range []string{"alice", "a/b", "a:b", "b64:YS9i", "b64:YTpi", "%61", "a%2Fb", ".", "..", "cn=a,dc=b", "а", "a"} {
		result := IdentityName("p", name)
		if other, ok := seen[result]; ok {
			t.Errorf("%q and %q are both %q", name, other, result)
		}
		seen[result] = name
	}
}
