package build

import (
	"encoding/json"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestCallerOfWebhookGetsNoValuesOfBuild(t *testing.T) {
	build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Name: "app-1", Namespace: "shop", Annotations: map[string]string{"note": "treasure"}}}
	build.Spec.Strategy.SourceStrategy = &buildv1.SourceBuildStrategy{Env: []corev1.EnvVar{{Name: "PASSWORD", Value: "treasure"}}}
	build.Spec.Source.SourceSecret = &corev1.LocalObjectReference{Name: "treasure"}
	build.Spec.Revision = &buildv1.SourceRevision{Git: &buildv1.GitSourceRevision{Commit: "0123456789abcdef"}}
	text, err := json.Marshal(receipt(build))
	if err != nil || strings.Contains(string(text), "treasure") {
		t.Errorf("%s, %v", text, err)
	}
	for _, want := range []string{"app-1", "shop", "0123456789abcdef"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the response lacks %q: %s", want, text)
		}
	}
}

func TestConcealSecretInPathOfCall(t *testing.T) {
	const at = "/apis/build.openshift.io/v1/namespaces/shop/buildconfigs/front"
	for path, want := range map[string]string{
		at + "/webhooks/treasure/github":                                        at + "/webhooks/redacted/github",
		at + "/webhooks/treasure/github/x":                                      at + "/webhooks/redacted",
		at + "/webhooks/treasure":                                               at + "/webhooks/redacted",
		at + "/webhooks/treasure/":                                              at + "/webhooks/redacted",
		at + "/webhooks//treasure/generic/":                                     at + "/webhooks/redacted/generic",
		at + "/webhooks/trea/sure/generic":                                      at + "/webhooks/redacted/generic",
		at + "/webhooks/github":                                                 at + "/webhooks/github",
		at + "/instantiate":                                                     at + "/instantiate",
		"/apis/example.com/v1/webhooks/a/github":                                "/apis/example.com/v1/webhooks/a/github",
		"/oapi/v1/namespaces/shop/buildconfigs/front/webhooks/treasure/generic": "/oapi/v1/namespaces/shop/buildconfigs/front/webhooks/redacted/generic",
	} {
		if got := concealSecret(path); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
