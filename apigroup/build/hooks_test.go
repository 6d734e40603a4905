package build

import "testing"

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
