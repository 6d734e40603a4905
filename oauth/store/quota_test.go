package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	oauthv1 "github.com/openshift/api/oauth/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/store"
	"github.com/slipway-platform/slipway/oauth/store/storetest"
)

func TestTokensOfUserAreLimited(t *testing.T) {
	const limit, interval = 1000, 100
	tokens := storetest.New[*oauthv1.OAuthAccessToken](oauthv1.Resource("oauthaccesstokens"))
	tokens.Field = func(token *oauthv1.OAuthAccessToken, _ string) string { return token.UserName }
	quota := &store.Quota[*oauthv1.OAuthAccessToken]{Objects: tokens}
	start := time.Now().Truncate(time.Second)
	logIn := func(user string, number int) {
		t.Helper()
		if err := quota.Add(t.Context(), user); err != nil {
			t.Fatal(err)
		}
		_, err := tokens.Create(t.Context(), &oauthv1.OAuthAccessToken{UserName: user, ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint(user, number), CreationTimestamp: metav1.NewTime(start.Add(time.Duration(number) * time.Second)),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	logIn("alice", 0)
	for number := range 3 * limit {
		logIn("mallory", number)
		if number%(interval/2) != 0 {
			continue
		}
		if got := len(tokens.All()); got > 1+limit+interval {
			t.Fatalf("%d tokens exist after %d logins", got, number)
		}
	}
	names := map[string]bool{}
	for _, token := range tokens.All() {
		names[token.Name] = true
	}
	if !names["alice0"] {
		t.Error("the token of another user was deleted")
	}
	for _, number := range slices.Backward([]int{3*limit - 1, 3*limit - 2, 2 * limit}) {
		if !names[fmt.Sprint("mallory", number)] {
			t.Errorf("token %d was deleted, although it is not the oldest", number)
		}
	}
	if names["mallory0"] {
		t.Error("the oldest token still exists")
	}
}
