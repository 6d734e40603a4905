package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/oauth/client"
)

func TestRepeatedWarningsIncreaseCountOfEvent(t *testing.T) {
	w := newFixture(t, nil)
	browser := w.browser()
	w.logIn(browser, "alice", ask(demo()))
	for range 3 {
		got := w.send(browser, http.MethodGet, ask(url.Values{"client_id": {"system:serviceaccount:myproject:broken"}, "response_type": {"code"}}), nil, nil)
		if !strings.Contains(got.body, "The authorization server encountered an unexpected condition that prevented it from fulfilling the request.") {
			t.Errorf("the client receives %s", got.body)
		}
		if err := w.notices.write(t.Context(), <-w.notices.pending); err != nil {
			t.Fatal(err)
		}
	}
	events, err := w.kube.CoreV1().Events("myproject").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 {
		t.Fatalf("%v, events %v", err, events)
	}
	event := events.Items[0]
	if event.Count != 3 || event.Reason != "NoSAOAuthRedirectURIs" || event.Type != corev1.EventTypeWarning || event.Source.Component != "service-account-oauth-client-getter" ||
		event.InvolvedObject.Kind != "ServiceAccount" || event.InvolvedObject.Name != "broken" {
		t.Errorf("event %+v", event)
	}
}

func TestAccountWithoutTokenIsReported(t *testing.T) {
	w := newFixture(t, nil)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy"}}
	if err := w.notices.write(t.Context(), client.Notice{Account: account}); err != nil {
		t.Fatal(err)
	}
	events, err := w.kube.CoreV1().Events("myproject").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(events.Items) != 1 || events.Items[0].Reason != client.NoTokens {
		t.Errorf("%v, events %v", err, events)
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "myproject", Name: "proxy-token-abcde",
		Annotations: map[string]string{corev1.ServiceAccountNameKey: "proxy"}}, Type: corev1.SecretTypeServiceAccountToken}
	if _, err := w.kube.CoreV1().Secrets("myproject").Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if has, err := w.notices.hasToken(t.Context(), account); err != nil || !has {
		t.Errorf("with a token: %v, %v", has, err)
	}
}
