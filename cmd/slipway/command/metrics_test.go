package command

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestMetricsPrintsValidFiles(t *testing.T) {
	for args, want := range map[string]string{
		"scrape-config --server https://master.example.com:8443": "master.example.com:8443",
		"rights":                `namespace: "openshift-metrics"`,
		"rights -n own-project": `namespace: "own-project"`,
		"rules":                 "groups:",
		"dashboard":             `"panels"`,
		"scrape-config --server https://m:8443 --token-file /t": "/t",
	} {
		t.Run(args, func(t *testing.T) {
			output, err := verbOutput(t.TempDir(), append([]string{"metrics"}, strings.Fields(args)...)...)
			if err != nil || !strings.Contains(output, want) {
				t.Errorf("%v, %q is missing in\n%s", err, want, output)
			}
			var content any
			if err := yaml.Unmarshal([]byte(output), &content); err != nil {
				t.Errorf("the output is not YAML: %v", err)
			}
			if args == "dashboard" && !json.Valid([]byte(output)) {
				t.Error("the dashboard is not JSON")
			}
		})
	}
}
