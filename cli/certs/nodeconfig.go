package certs

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/yaml"
)

// node creates a node's certificates and configuration files.
type node struct {
	ca                     authority
	dir, name              string
	hosts, authorities     []string
	server, clientCA       string
	clientCert, clientKey  string
	servingCert, serverKey string
	listen                 string
	days                   int
	config                 legacyv1.NodeConfig
}

// NewNodeConfig returns the `oc adm create-node-config` command.
func NewNodeConfig(streams genericiooptions.IOStreams) *cobra.Command {
	n := &node{}
	command := &cobra.Command{
		Use:   "create-node-config",
		Short: "Create a configuration bundle for a node",
		Long: "Create the certificates and the configuration of a node.\n\n" +
			`"slipway up" creates and renews the certificates and the configuration of its node without this command.`,
		Run: run(func() error {
			if err := n.check(streams); err != nil {
				return err
			}
			fmt.Fprintln(streams.Out, "Generating node credentials ...")
			if err := n.create(); err != nil {
				return err
			}
			fmt.Fprintf(streams.Out, "Created node config for %s in %s\n", n.name, n.dir)
			return nil
		}),
	}
	n.addFlags(command.Flags())
	return command
}

func (n *node) addFlags(flags *pflag.FlagSet) {
	n.ca.addFlags(flags)
	flags.StringVar(&n.dir, "node-dir", "", "Directory to write to.")
	flags.StringVar(&n.name, "node", "", "Name of the node in the cluster.")
	flags.StringSliceVar(&n.hosts, "hostnames", nil, "Names and addresses of the node.")
	flags.StringVar(&n.config.VolumeDirectory, "volume-dir", "openshift.local.volumes", "Directory of the volumes on the node.")
	flags.StringVar(&n.config.ImageConfig.Format, "images", "openshift/origin-${component}:${version}", "Format of image names.")
	flags.BoolVar(&n.config.ImageConfig.Latest, "latest-images", false, "Use the latest images.")
	flags.BoolVar(&n.config.AllowDisabledDocker, "allow-disabled-docker", false, "Allow the node to start without a container runtime.")
	flags.StringVar(&n.config.DNSBindAddress, "dns-bind-address", "", "Address that the node's DNS server listens on.")
	flags.StringVar(&n.config.DNSDomain, "dns-domain", "cluster.local", "DNS domain of the cluster.")
	flags.StringVar(&n.config.DNSIP, "dns-ip", "", "Address of the DNS server for pods.")
	flags.StringVar(&n.config.NetworkConfig.NetworkPluginName, "network-plugin", "", "Name of the network plugin.")
	flags.StringVar(&n.listen, "listen", "https://0.0.0.0:10250", "Address that the node listens on (scheme://host:port).")
	flags.StringVar(&n.clientCert, "client-certificate", "", "Existing client certificate of the node, to use instead of a new one.")
	flags.StringVar(&n.clientKey, "client-key", "", "Key of --client-certificate.")
	flags.StringVar(&n.servingCert, "server-certificate", "", "Existing server certificate of the node, to use instead of a new one.")
	flags.StringVar(&n.serverKey, "server-key", "", "Key of --server-certificate.")
	flags.StringVar(&n.clientCA, "node-client-certificate-authority", masterDir+"/ca.crt", "File with the CA certificates that verify the node's clients.")
	flags.StringVar(&n.server, "master", "https://localhost:8443", "URL of the API server.")
	flags.StringSliceVar(&n.authorities, "certificate-authority", []string{masterDir + "/ca.crt"}, "Files with the CA certificates that verify the API server.")
	addDays(flags, &n.days, "expire-days", certificateDays)
}

// check returns an error if any flags are invalid. It requires the CAs of the node's clients.
// Otherwise, the node would accept requests from every client.
func (n *node) check(streams genericiooptions.IOStreams) error {
	for _, required := range [][2]string{
		{"node-dir", n.dir}, {"node", n.name}, {"master", n.server},
		{"certificate-authority", strings.Join(n.authorities, "")}, {"node-client-certificate-authority", n.clientCA},
	} {
		if required[1] == "" {
			return fmt.Errorf("--%s must be provided", required[0])
		}
	}
	switch listen, err := url.Parse(n.listen); {
	case err != nil || listen.Scheme != "https" || listen.Host == "":
		return fmt.Errorf("parse --listen %q: must be https://HOST:PORT", n.listen)
	case len(n.hosts) == 0:
		return errors.New("at least one hostname must be provided")
	case (n.clientCert == "") != (n.clientKey == ""):
		return errors.New("--client-certificate and --client-key must be provided together")
	case (n.servingCert == "") != (n.serverKey == ""):
		return errors.New("--server-certificate and --server-key must be provided together")
	}
	if err := checkDays(streams.ErrOut, "expire-days", n.days, certificateDays); err != nil {
		return err
	}
	if n.clientCert != "" && n.servingCert != "" {
		return nil
	}
	return n.ca.check()
}

// create writes all files. It keeps the node's existing certificates.
func (n *node) create() error {
	server, err := readAuthorities("--certificate-authority", n.authorities)
	if err != nil {
		return err
	}
	clients, err := readAuthorities("--node-client-certificate-authority", []string{n.clientCA})
	if err != nil {
		return err
	}
	client := request{name: "system:node:" + n.name, organizations: []string{"system:nodes"}, days: n.days}
	if err := n.place(n.clientCert, n.clientKey, "master-client", client); err != nil {
		return err
	}
	if err := n.place(n.servingCert, n.serverKey, "server", request{name: n.hosts[0], hosts: n.hosts, days: n.days}); err != nil {
		return err
	}
	k := kubeconfig{
		path: n.path("node.kubeconfig"), server: n.server, authorities: server, namespace: "default",
		cert: n.path("master-client.crt"), key: n.path("master-client.key"),
	}
	return errors.Join(
		writeFile(n.path("ca.crt"), server, 0o644),
		writeFile(n.path("node-client-ca.crt"), clients, 0o644),
		k.write(), n.writeConfig(),
	)
}

// place copies a certificate and its key if cert is set. Otherwise, it creates a certificate and a
// key, unless they already exist.
func (n *node) place(cert, key, name string, r request) error {
	newCert, newKey := n.path(name+".crt"), n.path(name+".key")
	if cert == "" {
		if fileExists(newCert) && fileExists(newKey) {
			return nil
		}
		return n.ca.issue(r, newCert, newKey)
	}
	certificate, err := os.ReadFile(cert)
	if err != nil {
		return fmt.Errorf("read certificate: %w", err)
	}
	private, err := os.ReadFile(key)
	if err != nil {
		return fmt.Errorf("read key: %w", err)
	}
	return errors.Join(writeFile(newCert, certificate, 0o644), writeFile(newKey, private, 0o600))
}

// writeConfig writes node-config.yaml. Paths in this file are relative to its directory.
func (n *node) writeConfig() error {
	listen, err := url.Parse(n.listen)
	if err != nil {
		return err
	}
	config := n.config
	config.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "NodeConfig"}
	config.NodeName, config.MasterKubeConfig = n.name, "node.kubeconfig"
	config.ServingInfo = legacyv1.ServingInfo{
		BindAddress: listen.Host, ClientCA: "node-client-ca.crt",
		CertInfo: legacyv1.CertInfo{CertFile: "server.crt", KeyFile: "server.key"},
	}
	encoded, err := yaml.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode node-config.yaml: %w", err)
	}
	return writeFile(n.path("node-config.yaml"), encoded, 0o600)
}

func (n *node) path(name string) string { return filepath.Join(n.dir, name) }
