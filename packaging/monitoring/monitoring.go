// Package monitoring contains files for programs that watch a cluster: the configuration, rights
// and alert rules of Prometheus, and a dashboard of Grafana.
package monitoring

import (
	_ "embed"
	"strings"
)

// Rules are the alert rules of Prometheus.
//
//go:embed cluster.rules.yml
var Rules string

// Dashboard is the dashboard of Grafana, in JSON. It asks for the data source, a Prometheus with
// Configuration.
//
//go:embed dashboard.json
var Dashboard string

//go:embed prometheus.yml
var configuration string

//go:embed rights.yaml
var rights string

// Files are the places that a configuration of Prometheus names.
type Files struct {
	// Server is the URL of the API server.
	Server string
	// Token and Authority are the paths of the token of Prometheus, and of the cluster's certificate
	// authority. Rules is a pattern of the paths of alert rules.
	Token, Authority, Rules string
}

// Configuration returns the configuration of a Prometheus that reads all metrics of a cluster.
func Configuration(files Files) string {
	return strings.NewReplacer(
		"${SERVER}", files.Server, "${TOKEN_FILE}", files.Token, "${CA_FILE}", files.Authority, "${RULES}", files.Rules,
	).Replace(configuration)
}

// Rights returns the role and the binding, as the items of a List in YAML, with which the service
// account prometheus of a namespace reads the metrics.
func Rights(namespace string) string { return strings.ReplaceAll(rights, "${NAMESPACE}", namespace) }
