// Package monitoring contains files for programs that monitor a cluster: a configuration,
// permissions and alerting rules for Prometheus, and a Grafana dashboard.
package monitoring

import (
	_ "embed"
	"strings"
)

// Rules contains alerting rules for Prometheus.
//
//go:embed cluster.rules.yml
var Rules string

// Dashboard is the Grafana dashboard in JSON. It prompts for the data source, which is a Prometheus
// server that uses the result of Configuration.
//
//go:embed dashboard.json
var Dashboard string

//go:embed prometheus.yml
var configuration string

//go:embed rights.yaml
var rights string

// Files contains the paths and the URL in a Prometheus configuration.
type Files struct {
	// Server is the API server's URL.
	Server string
	// Token is the path of the token with which Prometheus authenticates. Authority is the path of
	// the cluster's CA certificate. Rules is a pattern that matches the paths of the files with
	// alerting rules.
	Token, Authority, Rules string
}

// Configuration returns a Prometheus configuration that scrapes all of a cluster's metrics.
func Configuration(files Files) string {
	return strings.NewReplacer(
		"${SERVER}", files.Server, "${TOKEN_FILE}", files.Token, "${CA_FILE}", files.Authority, "${RULES}", files.Rules,
	).Replace(configuration)
}

// Rights returns the role and the role binding that allow the prometheus service account in a
// namespace to read the metrics. They are formatted as items of a List in YAML.
func Rights(namespace string) string { return strings.ReplaceAll(rights, "${NAMESPACE}", namespace) }
