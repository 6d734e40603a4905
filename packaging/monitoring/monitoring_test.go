package monitoring

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"sigs.k8s.io/yaml"
)

// TestDashboardHasTheFormOfGrafana decodes the dashboard with Grafana's own types, which reject
// unknown fields, panels and queries.
func TestDashboardHasTheFormOfGrafana(t *testing.T) {
	cog.NewRuntime().RegisterDataqueryVariant(prometheus.VariantConfig())
	cog.NewRuntime().RegisterPanelcfgVariant(timeseries.VariantConfig())
	// The method returns a list of problems as an error, which is not nil even if the list is
	// empty.
	if err := new(dashboard.Dashboard).UnmarshalJSONStrict([]byte(Dashboard)); err != nil && err.Error() != "" {
		t.Fatal(err)
	}
	var d dashboard.Dashboard
	if err := json.Unmarshal([]byte(Dashboard), &d); err != nil {
		t.Fatal(err)
	}
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	ids := map[uint32]bool{}
	for _, item := range d.Panels {
		switch panel := item.Panel; {
		case panel == nil:
		case panel.Description == nil || panel.FieldConfig.Defaults.Unit == nil:
			t.Errorf("panel %q has no description or unit", *panel.Title)
		case ids[*panel.Id]:
			t.Errorf("two panels have the ID %d", *panel.Id)
		default:
			ids[*panel.Id] = true
		}
	}
	if len(ids) < 10 {
		t.Errorf("the dashboard has %d panels", len(ids))
	}
}

func TestConfigurationNamesItsFiles(t *testing.T) {
	text := Configuration(Files{Server: "https://master:8443", Token: "/t", Authority: "/c", Rules: "/r/*.yml"})
	var configuration struct {
		Rules []string `json:"rule_files"`
		Jobs  []struct {
			Name          string `json:"job_name"`
			Redirects     *bool  `json:"follow_redirects"`
			Authorization map[string]string
			Services      []struct {
				URL           string
				Authorization map[string]string
				TLS           map[string]string `json:"tls_config"`
			} `json:"http_sd_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(text), &configuration); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(text, "${") || configuration.Rules[0] != "/r/*.yml" || len(configuration.Jobs) != 2 {
		t.Errorf("the configuration is\n%s", text)
	}
	for _, job := range configuration.Jobs {
		service := job.Services[0]
		if !strings.HasPrefix(service.URL, "https://master:8443/slipway/metrics/") || service.Authorization["credentials_file"] != "/t" || service.TLS["ca_file"] != "/c" {
			t.Errorf("job %s discovers its targets by %+v", job.Name, service)
		}
		if sends := job.Authorization != nil; sends != (job.Name == "cluster") {
			t.Errorf("job %s sends the token: %t", job.Name, sends)
		}
		if follows := job.Redirects == nil || *job.Redirects; follows && job.Name == "services" {
			t.Error("services of users can redirect Prometheus")
		}
	}
}

func TestRightsAreForAccountOfProject(t *testing.T) {
	var items []struct {
		Kind     string
		Subjects []struct{ Kind, Name, Namespace string }
	}
	if err := yaml.Unmarshal([]byte(Rights("watch")), &items); err != nil {
		t.Fatal(err)
	}
	if len(items) != 2 || items[1].Kind != "ClusterRoleBinding" || items[1].Subjects[0].Namespace != "watch" {
		t.Errorf("the rights are %+v", items)
	}
}
