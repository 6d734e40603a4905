package app

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/app/newapp"
)

func TestURLArgumentCanNameTemplate(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/shop.yaml" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte("{apiVersion: template.openshift.io/v1, kind: Template, metadata: {name: shop}}"))
	}))
	defer server.Close()
	of := func(path string) []newapp.Component { return []newapp.Component{{Source: server.URL + path}} }
	for name, tt := range map[string]struct {
		request newapp.Request
		want    string
	}{
		"template":                 {newapp.Request{Components: of("/shop.yaml")}, ""},
		"for a build":              {newapp.Request{Components: of("/shop.yaml"), BuildOnly: true}, "is a template; use oc new-app"},
		"as source":                {newapp.Request{Sources: []string{server.URL + "/shop.yaml"}}, "use oc new-app -f"},
		"file that does not exist": {newapp.Request{Components: of("/none")}, "unable to load template file"},
	} {
		o := &newApp{factory: util.NewFactory(genericclioptions.NewConfigFlags(false)), request: tt.request}
		plan, err := o.plan(t.Context(), &newapp.Finder{Namespace: "shop"})
		if tt.want != "" {
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v, want %q", name, err, tt.want)
			}
			continue
		}
		if err != nil || len(plan.Parts) > 0 || len(o.files) != 1 || o.files[0] != server.URL+"/shop.yaml" {
			t.Errorf("%s: files %q, %v", name, o.files, err)
		}
	}
}
