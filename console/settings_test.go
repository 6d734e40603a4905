package console

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/eventually"
)

const webConsoleConfig = `
apiVersion: webconsole.config.openshift.io/v1
kind: WebConsoleConfiguration
clusterInfo:
  consolePublicURL: https://console.example.com:8443/console/
  masterPublicURL: https://api.example.com:8443
  loggingPublicURL: https://kibana.example.com/app
  metricsPublicURL: https://metrics.example.com/hawkular/metrics
  logoutPublicURL: https://www.example.com/bye
features: {inactivityTimeoutMinutes: 15, clusterResourceOverridesEnabled: true}
extensions:
  scriptURLs: ["https://www.example.com/a.js?v=1"]
  stylesheetURLs: [https://www.example.com/a.css]
  properties: {color: blue}
servingInfo: {bindAddress: "0.0.0.0:8443", certFile: /var/serving-cert/tls.crt}
`

func TestSettingsApplyToPagesAndLogins(t *testing.T) {
	f := newFixture(t)
	f.apply(webConsoleConfig)
	if len(f.errors) > 0 {
		t.Fatal(f.errors)
	}
	b := f.browser()
	policy := b.send(http.MethodGet, "/console/", nil).Header().Get("Content-Security-Policy")
	for _, want := range []string{"script-src 'self' https://www.example.com/a.js;", "style-src 'self' https://www.example.com/a.css;"} {
		if !strings.Contains(policy, want) {
			t.Errorf("policy %q does not contain %q", policy, want)
		}
	}
	got := b.send(http.MethodGet, configPath, nil).Body.String()
	for _, want := range []string{
		`"masterURL":"https://api.example.com:8443"`, `"inactivityTimeoutMinutes":15`, `"properties":{"color":"blue"}`, `"logoutPublicURL":"https://www.example.com/bye"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("configuration %s does not contain %s", got, want)
		}
	}
	if strings.Contains(got, "serving-cert") {
		t.Errorf("visitors get paths of the server: %s", got)
	}
	for start, want := range map[string]string{
		"https://other.example.com:8443" + loginPath:   "https://console.example.com:8443" + loginPath,
		"https://console.example.com:8443" + loginPath: "https://api.example.com:8443/oauth/authorize",
	} {
		location := b.send(http.MethodGet, start, nil).Header().Get("Location")
		if !strings.HasPrefix(location, want+"?") {
			t.Errorf("%s redirects to %s, want %s", start, location, want)
		}
	}
}

func TestInvalidSettingsAreReportedTogether(t *testing.T) {
	f := newFixture(t)
	f.apply(webConsoleConfig)
	f.apply(`
kind: WebConsoleConfiguration
clusterInfo: {consolePublicURL: "https://console.example.com/other/", masterPublicURL: "http://api.example.com"}
features: {inactivityTimeoutMinutes: -1}
extensions: {scriptURLs: ["https://a.example.com/x.js; script-src *"], stylesheetURLs: ["javascript:alert(1)"]}`)
	if len(f.errors) != 1 {
		t.Fatalf("%d errors: %v", len(f.errors), f.errors)
	}
	for _, want := range []string{
		"openshift-web-console/webconsole-config", "consolePublicURL", "masterPublicURL", "inactivityTimeoutMinutes", "scriptURLs[0]", "stylesheetURLs[0]",
	} {
		if !strings.Contains(f.errors[0].Error(), want) {
			t.Errorf("the error does not name %s: %v", want, f.errors[0])
		}
	}
	f.apply("extension: {}")
	if len(f.errors) != 2 || !strings.Contains(f.errors[1].Error(), `unknown field "extension"`) {
		t.Errorf("an unknown key: %v", f.errors)
	}
	if f.settings().Features.InactivityTimeoutMinutes != 15 {
		t.Error("invalid settings replace valid ones")
	}
}

func TestSettingsFollowConfigMap(t *testing.T) {
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: settingsNamespace, Name: settingsName}, Data: map[string]string{settingsKey: webConsoleConfig}}
	client := fake.NewClientset(configMap)
	f := newFixture(t)
	if err := f.follow(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if f.settings().Features.InactivityTimeoutMinutes != 15 {
		t.Error("the settings are not read")
	}
	if err := client.CoreV1().ConfigMaps(settingsNamespace).Delete(t.Context(), settingsName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the defaults", func() bool { return f.settings().Features.InactivityTimeoutMinutes == 0 })
}

func TestUsersDownloadClients(t *testing.T) {
	f := newFixture(t)
	f.Downloads = t.TempDir()
	for name, content := range map[string]string{"oc-darwin-amd64": "mach", "oc-windows-amd64.exe": "mz", "slipway": "secret", "oc-linux-arm64": ""} {
		if err := os.WriteFile(filepath.Join(f.Downloads, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	user, stranger := f.browser(), f.browser()
	user.logIn()
	for _, tt := range []struct {
		b       *browser
		name    string
		status  int
		content string
	}{
		{user, "oc-darwin-amd64", 200, "mach"}, {user, "oc-windows-amd64", 200, "mz"},
		{stranger, "oc-darwin-amd64", 401, "Log in"}, {user, "slipway", 404, "make oc-all"}, {user, "../slipway", 404, "make oc-all"},
	} {
		got := tt.b.send(http.MethodGet, downloadsPath+tt.name, nil)
		if got.Code != tt.status || !strings.HasPrefix(got.Body.String(), tt.content) && !strings.Contains(got.Body.String(), tt.content) {
			t.Errorf("%s: %d %s", tt.name, got.Code, got.Body)
		}
	}
	if got := user.send(http.MethodGet, downloadsPath+"oc-windows-amd64", nil).Header(); got.Get("Content-Disposition") != "attachment; filename=oc.exe" {
		t.Errorf("%v", got)
	}
}
