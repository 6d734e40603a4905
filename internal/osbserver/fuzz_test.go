package osbserver

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// FuzzOriginator tests a platform without permission to impersonate users. The platform can specify
// neither a reserved user name nor groups other than the groups of every logged-in user.
func FuzzOriginator(f *testing.F) {
	for _, seed := range []string{
		`{"username": "alice", "groups": ["system:authenticated"]}`, `{"username": "alice", "groups": ["system:masters"]}`, `{"username": "system:admin"}`,
		`{"username": "alice", "extra": {"a": ["b"]}}`, `{"USERNAME": "system:admin"}`, "null", "[",
	} {
		f.Add("kubernetes " + base64.StdEncoding.EncodeToString([]byte(seed)))
	}
	refuse := authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionNoOpinion, "", nil
	})
	f.Fuzz(func(t *testing.T, header string) {
		r := httptest.NewRequest(http.MethodPut, "/", nil)
		r = r.WithContext(request.WithUser(r.Context(), &user.DefaultInfo{Name: "platform"}))
		r.Header.Set(IdentityHeader, header)
		u, err := Originator(r, refuse)
		if err != nil {
			return
		}
		strange := slices.ContainsFunc(u.GetGroups(), func(group string) bool { return !strings.HasPrefix(group, user.AllAuthenticated) })
		if u.GetName() == "" || strings.HasPrefix(u.GetName(), "system:") || strange {
			t.Errorf("%q names the user %q in %q", header, u.GetName(), u.GetGroups())
		}
	})
}
