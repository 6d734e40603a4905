package build

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/internal/apitest"
)

func TestWebhookOfCurrentServerUsesItsCA(t *testing.T) {
	var got buildv1.GenericWebHookEvent
	var login string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		login = r.Header.Get("Authorization")
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	hook := Hook{URL: server.URL + "/webhooks/secret/generic", PostReceive: "-"}
	const received = "0000 1234 refs/heads/main\n"
	if _, err := hook.Call(t.Context(), strings.NewReader(received)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("a server with an unknown certificate was called: %v", err)
	}
	hook.Server = &rest.Config{Host: server.URL, BearerToken: "token", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	if _, err := hook.Call(t.Context(), strings.NewReader(received)); err != nil {
		t.Fatal(err)
	}
	if got.Git == nil || len(got.Git.Refs) != 1 || got.Git.Refs[0].Commit != "1234" || login != "" {
		t.Errorf("the webhook got %+v, with credentials %q", got.Git, login)
	}
	hook.Server.Host = "https://other.example.com"
	if _, err := hook.Call(t.Context(), strings.NewReader(received)); err == nil {
		t.Error("another server is trusted like the current one")
	}
}

func TestListedWebhooksConcealSecrets(t *testing.T) {
	config := apitest.Start(t).Config()
	client, err := New(config, "shop")
	if err != nil {
		t.Fatal(err)
	}
	hook := &buildv1.WebHookTrigger{Secret: "secret101"}
	if _, err := client.BuildConfigs("shop").Create(t.Context(), &buildv1.BuildConfig{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: buildv1.BuildConfigSpec{
		Triggers: []buildv1.BuildTriggerPolicy{
			{Type: buildv1.GenericWebHookBuildTriggerType, GenericWebHook: hook}, {Type: buildv1.GitHubWebHookBuildTriggerType, GitHubWebHook: hook}, {Type: buildv1.ConfigChangeBuildTriggerType},
		},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	address := config.Host + "/apis/build.openshift.io/v1/namespaces/shop/buildconfigs/web/webhooks/<secret>/"
	for of, want := range map[string]string{
		"generic": address + "generic\n",
		"github":  address + "github\n",
		"gitlab":  "",
		"all":     "generic " + address + "generic\ngithub " + address + "github\n",
	} {
		var out strings.Builder
		if err := client.ListHooks(t.Context(), "web", of, &out); err != nil || out.String() != want {
			t.Errorf("webhooks %s: %q, %v, want %q", of, out.String(), err, want)
		}
	}
}
