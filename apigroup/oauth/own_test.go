package oauth

import (
	"strings"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/generic/registry"

	"github.com/slipway-platform/slipway/apiserver/storetest"
)

func TestUsersGetOnlyOwnTokens(t *testing.T) {
	hashed := func(char string) string { return hashPrefix + strings.Repeat(char, hashLength) }
	stored := func(name, userName, uid string) *oauthv1.OAuthAccessToken {
		return &oauthv1.OAuthAccessToken{ObjectMeta: metav1.ObjectMeta{Name: name}, UserName: userName, UserUID: uid}
	}
	plain := strings.Repeat("p", minTokenName)
	tokens := oauthv1.Resource("oauthaccesstokens")
	o := &own{stores: map[schema.GroupResource]*registry.Store{tokens: storetest.New(tokens, &oauthv1.OAuthAccessTokenList{},
		stored(hashed("a"), "alice", "1"), stored(hashed("b"), "bob", "2"), stored(hashed("c"), "alice", "0"), stored(plain, "alice", "1"))}}
	alice := &user.DefaultInfo{Name: "alice", UID: "1"}
	for name, tt := range map[string]struct {
		as    user.Info
		token string
		shown bool
	}{
		"own token":                                {alice, hashed("a"), true},
		"token of another user":                    {alice, hashed("b"), false},
		"token of an earlier user with the name":   {alice, hashed("c"), false},
		"token whose name is the token":            {alice, plain, false},
		"missing token":                            {alice, hashed("d"), false},
		"component without a UID, named like user": {&user.DefaultInfo{Name: "alice"}, hashed("a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			object, err := o.Get(request.WithUser(t.Context(), tt.as), tt.token, &metav1.GetOptions{})
			if tt.shown && (err != nil || object.(*oauthv1.UserOAuthAccessToken).Name != tt.token) || !tt.shown && !apierrors.IsNotFound(err) {
				t.Errorf("got %v, %v", object, err)
			}
		})
	}
	if _, err := o.Get(t.Context(), hashed("a"), &metav1.GetOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a request without a user: %v", err)
	}
}

func TestNarrowedSelectsTokensOfUser(t *testing.T) {
	got := narrowed(nil, &user.DefaultInfo{Name: "alice", UID: "1"})
	for name, tt := range map[string]struct {
		fields map[string]string
		want   bool
	}{
		"own token":             {map[string]string{"userName": "alice", "userUID": "1"}, true},
		"token of another user": {map[string]string{"userName": "bob", "userUID": "2"}, false},
		"token of another UID":  {map[string]string{"userName": "alice", "userUID": "2"}, false},
	} {
		if matches := got.FieldSelector.Matches(fields.Set(tt.fields)); matches != tt.want {
			t.Errorf("%s: selected %v, want %v", name, matches, tt.want)
		}
	}
}
