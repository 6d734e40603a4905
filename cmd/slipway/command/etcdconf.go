package command

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// etcdConfCommand returns the command that converts an etcd.conf.
func etcdConfCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "conf FILE",
		Short: "Print the master-config.yaml settings for an etcd.conf",
		Long: "Print the master-config.yaml settings for an etcd.conf, as in /etc/etcd/etcd.conf of OpenShift 3: the addresses and the\n" +
			"directory. Variables without a counterpart become comments that name their replacement.",
		Example: "  slipway etcd conf /etc/etcd/etcd.conf",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file, err := os.Open(args[0])
			if err != nil {
				return fmt.Errorf("read etcd.conf: %w", err)
			}
			defer file.Close()
			variables, err := readVariables(file)
			if err != nil {
				return fmt.Errorf("parse etcd.conf %q: %w", args[0], err)
			}
			return printEtcdConf(cmd.OutOrStdout(), variables)
		},
	}
}

// readVariables reads NAME=VALUE lines from a file in the format of systemd's EnvironmentFile.
func readVariables(in io.Reader) (map[string]string, error) {
	variables := map[string]string{}
	lines := bufio.NewScanner(in)
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export ")
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, assigned := strings.Cut(line, "=")
		if !assigned || strings.ContainsAny(name, " \t") {
			return nil, fmt.Errorf("line %d is %q, must be NAME=VALUE", number, line)
		}
		variables[name] = strings.Trim(strings.TrimSpace(value), `"'`)
	}
	return variables, lines.Err()
}

// replacedVariables maps prefixes of environment variables in etcd.conf to remedies, which name the
// settings that replace the variables.
var replacedVariables = []struct{ prefix, remedy string }{
	{"ETCD_NAME", "a member has the name of its node: nodeName in node-config.yaml"},
	{"ETCD_INITIAL_", "not needed, because new members join with: slipway token create --role master, then slipway up --join"},
	{"ETCD_ADVERTISE_", "a member advertises the address of its host: nodeIP in node-config.yaml"},
	{"ETCD_DISCOVERY", "not needed, because new members join with: slipway token create --role master, then slipway up --join"},
	{"ETCD_CERT_FILE", "Slipway issues the certificates of etcd"},
	{"ETCD_KEY_FILE", "Slipway issues the certificates of etcd"},
	{"ETCD_CA_FILE", "Slipway issues the certificates of etcd"},
	{"ETCD_TRUSTED_CA_FILE", "Slipway issues the certificates of etcd"},
	{"ETCD_CLIENT_CERT_AUTH", "not needed, because clients always need a certificate of the cluster"},
	{"ETCD_PEER_", "Slipway issues the certificates of etcd, and members always need one"},
	{"ETCD_FORCE_NEW_CLUSTER", "use `slipway etcd reset`"},
	{"ETCD_HEARTBEAT_INTERVAL", "fixed, for masters with a network latency of a few milliseconds"},
	{"ETCD_ELECTION_TIMEOUT", "fixed, for masters with a network latency of a few milliseconds"},
	{"ETCD_QUOTA_BACKEND_BYTES", "fixed at 8 GiB"},
	{"ETCD_SNAPSHOT_COUNT", "fixed"},
	{"ETCD_AUTO_COMPACTION", "previous revisions are removed after five minutes"},
}

// printEtcdConf prints the part of a MasterConfig that corresponds to the environment variables.
func printEtcdConf(out io.Writer, variables map[string]string) error {
	settings := map[string]string{}
	var comments []string
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		value := variables[name]
		switch name {
		case "ETCD_DATA_DIR":
			settings["storageDirectory"] = value
		case "ETCD_LISTEN_CLIENT_URLS", "ETCD_LISTEN_PEER_URLS":
			address, err := listenAddress(value)
			if err != nil {
				return fmt.Errorf("%s is %q: %w", name, value, err)
			}
			key := map[string]string{"ETCD_LISTEN_CLIENT_URLS": "address", "ETCD_LISTEN_PEER_URLS": "peerAddress"}[name]
			settings[key] = address
		default:
			comments = append(comments, fmt.Sprintf("# %s: %s", name, remedyOf(name)))
		}
	}
	text, err := yaml.Marshal(map[string]any{"etcdConfig": settings})
	if err != nil {
		return err
	}
	if len(settings) > 0 {
		fmt.Fprint(out, string(text))
	}
	for _, comment := range comments {
		fmt.Fprintln(out, comment)
	}
	return nil
}

// listenAddress returns the host:port of the first URL in a comma-separated list.
func listenAddress(urls string) (string, error) {
	first, _, _ := strings.Cut(urls, ",")
	u, err := url.Parse(strings.TrimSpace(first))
	if err != nil || u.Scheme != "https" || u.Port() == "" {
		return "", errors.New("must begin with a URL such as https://192.0.2.1:2379; etcd serves TLS only")
	}
	return u.Host, nil
}

// remedyOf returns what an administrator does instead of setting an environment variable.
func remedyOf(name string) string {
	for _, replaced := range replacedVariables {
		if strings.HasPrefix(name, replaced.prefix) {
			return replaced.remedy
		}
	}
	return "has no counterpart"
}
