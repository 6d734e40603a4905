package certs

import (
	"errors"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// master creates a master's files: certificates, keys and kubeconfigs.
type master struct {
	dir, signer, server, publicServer string
	hosts, authorities                []string
	days, signerDays                  int
	overwrite                         bool
}

// masterClient describes a client certificate of a master.
type masterClient struct {
	file, user string
	groups     []string
	kubeconfig bool
}

// masterClients returns the client certificates of an OpenShift 3.11 master. Their groups match the
// groups in Slipway's own client certificates.
func masterClients() []masterClient {
	return []masterClient{
		{file: "admin", user: "system:admin", groups: []string{"system:cluster-admins", "system:masters"}, kubeconfig: true},
		{file: "openshift-master", user: "system:openshift-master", groups: []string{"system:masters"}, kubeconfig: true},
		{file: "master.etcd-client", user: "system:master"},
		{file: "master.kubelet-client", user: "system:openshift-node-admin", groups: []string{"system:node-admins"}},
		{file: "master.proxy-client", user: "system:master-proxy"},
	}
}

// newMasterCerts returns the `oc adm ca create-master-certs` command.
func newMasterCerts(streams genericiooptions.IOStreams) *cobra.Command {
	m := &master{}
	command := &cobra.Command{
		Use:   "create-master-certs",
		Short: "Create certificates and keys for a master",
		Long: "Create keys and certificates of a master, and its client configurations.\n\n" +
			`"slipway up" creates and renews the certificates of its cluster without this command.`,
		Run: run(func() error {
			if err := m.check(streams); err != nil {
				return err
			}
			return m.create()
		}),
	}
	flags := command.Flags()
	flags.StringVar(&m.dir, "cert-dir", masterDir, "Directory to write to.")
	flags.StringVar(&m.signer, "signer-name", defaultName("openshift-signer"), "Name of the signer.")
	flags.Lookup("signer-name").DefValue = "openshift-signer@TIME"
	flags.StringSliceVar(&m.authorities, "certificate-authority", nil, "Files with additional CA certificates that verify the API server.")
	flags.StringVar(&m.server, "master", "https://localhost:8443", "URL of the API server.")
	flags.StringVar(&m.publicServer, "public-master", "", "URL of the API server for users, if it differs.")
	flags.StringSliceVar(&m.hosts, "hostnames", nil, "Names and addresses of the master.")
	flags.BoolVar(&m.overwrite, "overwrite", true, "Overwrite existing files, including the signer's.")
	addDays(flags, &m.days, "expire-days", certificateDays)
	addDays(flags, &m.signerDays, "signer-expire-days", authorityDays)
	return command
}

// check returns an error if any flags are invalid.
func (m *master) check(streams genericiooptions.IOStreams) error {
	switch {
	case len(m.hosts) == 0:
		return errors.New("at least one hostname must be provided")
	case m.dir == "":
		return errors.New("cert-dir must be provided")
	case m.signer == "":
		return errors.New("signer-name must be provided")
	case m.server == "":
		return errors.New("master must be provided")
	case !isURL(m.server):
		return errors.New("master must be a valid URL (e.g. https://10.0.0.1:8443)")
	case m.publicServer != "" && !isURL(m.publicServer):
		return errors.New("public master must be a valid URL (e.g. https://example.com:8443)")
	}
	return errors.Join(
		checkDays(streams.ErrOut, "expire-days", m.days, certificateDays),
		checkDays(streams.ErrOut, "signer-expire-days", m.signerDays, authorityDays),
	)
}

// isURL reports whether text is a URL with a scheme and a host.
func isURL(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && parsed.Scheme != "" && parsed.Host != ""
}

// create writes all files. Without --overwrite, it keeps existing certificates and keys.
func (m *master) create() error {
	bundle, err := readAuthorities("certificate authority", m.authorities)
	if err != nil {
		return err
	}
	signers := map[string]string{"ca": m.signer, "frontproxy-ca": defaultName("aggregator-proxy-ca"), "service-signer": defaultName("openshift-service-serving-signer")}
	for file, name := range signers {
		if ca := m.authority(file); m.overwrite || !ca.exists() {
			if err := ca.create(name, m.signerDays); err != nil {
				return err
			}
		}
	}
	ca, err := readAuthorities("certificate authority", []string{m.path("ca.crt")})
	if err != nil {
		return err
	}
	bundle = append(ca, bundle...)
	if err := writeFile(m.path("ca-bundle.crt"), bundle, 0o644); err != nil {
		return err
	}
	return errors.Join(m.createLeaves(), m.createKubeconfigs(bundle), m.createTokenKeys())
}

// createLeaves writes the serving and client certificates, and their keys.
func (m *master) createLeaves() error {
	ca, frontProxy := m.authority("ca"), m.authority("frontproxy-ca")
	var problems []error
	issue := func(ca authority, file string, r request) {
		cert, key := m.path(file+".crt"), m.path(file+".key")
		if !m.overwrite && fileExists(cert) && fileExists(key) {
			return
		}
		r.days = m.days
		problems = append(problems, ca.issue(r, cert, key))
	}
	for _, server := range []string{"master.server", "etcd.server"} {
		issue(ca, server, request{name: m.hosts[0], hosts: m.hosts})
	}
	for _, client := range masterClients() {
		issue(ca, client.file, request{name: client.user, organizations: client.groups})
	}
	issue(frontProxy, "aggregator-front-proxy", request{name: "aggregator-front-proxy"})
	return errors.Join(problems...)
}

// createKubeconfigs writes kubeconfigs for the clients that have one.
func (m *master) createKubeconfigs(bundle []byte) error {
	var problems []error
	for _, client := range masterClients() {
		if client.kubeconfig {
			problems = append(problems, kubeconfig{
				path: m.path(client.file + ".kubeconfig"), server: m.server, publicServer: m.publicServer, authorities: bundle,
				cert: m.path(client.file + ".crt"), key: m.path(client.file + ".key"), namespace: "default",
			}.write())
		}
	}
	return errors.Join(problems...)
}

// createTokenKeys writes the key pair for signing and verifying service account tokens.
func (m *master) createTokenKeys() error {
	public, private := m.path("serviceaccounts.public.key"), m.path("serviceaccounts.private.key")
	if !m.overwrite && fileExists(public) && fileExists(private) {
		return nil
	}
	return createKeyPair(public, private, true)
}

func (m *master) path(name string) string { return filepath.Join(m.dir, name) }

// authority returns the CA with the given file name. The service signer uses random serial numbers.
func (m *master) authority(file string) authority {
	ca := authority{cert: m.path(file + ".crt"), key: m.path(file + ".key")}
	if file != "service-signer" {
		ca.serial = m.path(file + ".serial.txt")
	}
	return ca
}
