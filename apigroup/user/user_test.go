package user

import (
	"strings"
	"testing"

	userv1 "github.com/openshift/api/user/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]bool{
		// The last valid name begins with a Cyrillic letter, so it differs from admin.
		"alice": true, "alice@example.com": true, "Alice A.": true, "éva": true, "аdmin": true,
		"": false, "~": false, ".": false, "..": false, "a/b": false, "a:b": false, "a%b": false, "system:admin": false,
		"adm\u200bin": false, "adm\u00adin": false, "admin\u202e": false, "a\nb": false, "a\x00": false, "\xff": false,
		"e\u0301va": false, " admin": false, "admin ": false, strings.Repeat("a", 254): false,
	} {
		if got := name != "" && len(userName(name, false)) == 0; got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
	if len(groupName("system:masters", false)) == 0 || len(groupName("team:dev", false)) != 0 {
		t.Error("wrong reasons for names of groups")
	}
}

func TestValidateIdentity(t *testing.T) {
	identity := func(name, provider, user string) *userv1.Identity {
		return &userv1.Identity{ObjectMeta: metav1.ObjectMeta{Name: name}, ProviderName: provider, ProviderUserName: user}
	}
	good := identity("ldap:cn=a,dc=b", "ldap", "cn=a,dc=b")
	if errs := validateIdentity(t.Context(), good, good); len(errs) > 0 {
		t.Error(errs)
	}
	uidAlone := identity("a:b", "a", "b")
	uidAlone.User = corev1.ObjectReference{UID: "1"}
	for name, invalid := range map[string]*userv1.Identity{
		"another name": identity("ldap:x", "ldap", "y"), "no provider": identity(":y", "", "y"), "no user": identity("x:", "x", ""),
		"a colon in the provider": identity("a:b:c", "a:b", "c"), "a UID without a name": uidAlone,
	} {
		if len(validateIdentity(t.Context(), invalid, nil)) == 0 {
			t.Errorf("%s: accepted", name)
		}
	}
	if len(validateIdentity(t.Context(), identity("ldap:z", "ldap", "z"), good)) == 0 {
		t.Error("the parts of an identity were changed")
	}
}

func TestValidateGroup(t *testing.T) {
	for name, tt := range map[string]struct {
		users []string
		want  int
	}{
		"two": {[]string{"a", "b"}, 0}, "a duplicate user": {[]string{"a", "a"}, 1}, "an empty name": {[]string{""}, 1}, "a service account": {[]string{"system:serviceaccount:a:b"}, 1},
	} {
		if got := validateGroup(t.Context(), &userv1.Group{Users: tt.users}, nil); len(got) != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
