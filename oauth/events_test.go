package oauth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWarningsAreEventsThatAreCounted(t *testing.T) {
	w := newWorld(t, nil)
	for range 3 {
		got := w.send(w.browser(), http.MethodGet, ask(url.Values{"client_id": {"system:serviceaccount:myproject:broken"}, "response_type": {"code"}}), nil, nil)
		if !strings.Contains(got.body, "The authorization server encountered an unexpected condition that prevented it from fulfilling the request.") {
			t.Errorf("the client sees %s", got.body)
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
