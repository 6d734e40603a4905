package oauth

import (
	"errors"
	"net/http"
	"net/url"
	"testing"

	oauthv1 "github.com/openshift/api/oauth/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-platform/slipway/oauth/token"
)

const proxyID = "system:serviceaccount:myproject:proxy"

// proxy returns an authorization request by the service account `proxy`, which is a client.
func proxy(responseType string) string {
	return ask(url.Values{"client_id": {proxyID}, "response_type": {responseType}, "scope": {"role:view:myproject"}})
}

// recreate replaces the service account with an account that has a different UID, as happens when a
// project is deleted and created again.
func (w *fixture) recreate(uid types.UID) {
	w.t.Helper()
	accounts := w.kube.CoreV1().ServiceAccounts("myproject")
	old, err := accounts.Get(w.t.Context(), "proxy", metav1.GetOptions{})
	if err == nil {
		err = accounts.Delete(w.t.Context(), "proxy", metav1.DeleteOptions{})
	}
	if err == nil {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy", UID: uid, Annotations: old.Annotations}}
		_, err = accounts.Create(w.t.Context(), account, metav1.CreateOptions{})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// approve approves the service account's request and returns its access token.
func (w *fixture) approve(browser *http.Client) (secret string) {
	w.t.Helper()
	page := w.get(browser, w.get(browser, proxy("token")).at().String())
	form := page.fields()
	form.Set("approve", "1")
	back := w.get(browser, w.post(browser, "/oauth/approve", form).at().String())
	values, err := url.ParseQuery(back.at().Fragment)
	if err != nil || values.Get("access_token") == "" {
		w.t.Fatalf("redirected to %s, %v: %s", back.at(), err, back.body)
	}
	return values.Get("access_token")
}

func TestRecreatedServiceAccountGetsNoTokens(t *testing.T) {
	w := newFixture(t, nil)
	w.recreate("first")
	browser := w.browser()
	w.logIn(browser, "alice", proxy("token"))
	first := w.approve(browser)
	code := w.get(browser, proxy("code")).at().Query().Get("code") // no approval page is shown
	authenticate := func(secret string) error {
		_, _, err := w.authenticator().AuthenticateToken(t.Context(), secret)
		return err
	}
	if err := authenticate(first); err != nil || code == "" {
		t.Fatalf("the code of the first account is %q, the token: %v", code, err)
	}

	w.recreate("second")
	if err := authenticate(first); !errors.Is(err, token.ErrNoClient) {
		t.Errorf("a token of the first account: %v", err)
	}
	if got := w.get(browser, proxy("token")); got.at().Path != "/oauth/approve" {
		t.Errorf("the grant for the first account is still valid: redirected to %s", got.at())
	}
	always := func(*oauthv1.OAuthAuthorizeToken) bool { return true }
	if _, err := w.issuer.Redeem(t.Context(), must(t, w, proxyID), code, always); !errors.Is(err, token.ErrInvalidCode) {
		t.Errorf("a code of the first account: %v", err)
	}

	second := w.approve(browser)
	if err := authenticate(second); err != nil {
		t.Errorf("a token of the second account: %v", err)
	}
	if err := w.kube.CoreV1().ServiceAccounts("myproject").Delete(t.Context(), "proxy", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := authenticate(second); !errors.Is(err, token.ErrNoClient) {
		t.Errorf("a token of a deleted account: %v", err)
	}
}
