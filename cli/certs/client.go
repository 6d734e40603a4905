package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// kubeconfig is a kubeconfig file with a client certificate.
type kubeconfig struct {
	path, server, publicServer string
	authorities                []byte
	cert, key, namespace       string
}

// write writes the file, which only its owner can read. If the public server differs from server,
// the file contains a second context for the public server.
func (k kubeconfig) write() error {
	pair, err := tls.LoadX509KeyPair(k.cert, k.key)
	if err != nil {
		return fmt.Errorf("read client certificate %q: %w", k.cert, err)
	}
	cert, err := os.ReadFile(k.cert)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(k.key)
	if err != nil {
		return err
	}
	config := api.NewConfig()
	servers := []string{k.server}
	if k.publicServer != "" && k.publicServer != k.server {
		servers = append(servers, k.publicServer)
	}
	for _, server := range servers {
		cluster, err := nameOf(server)
		if err != nil {
			return err
		}
		user := pair.Leaf.Subject.CommonName + "/" + cluster
		config.AuthInfos[user] = &api.AuthInfo{ClientCertificateData: cert, ClientKeyData: key}
		config.Clusters[cluster] = &api.Cluster{Server: server, CertificateAuthorityData: k.authorities}
		context := k.namespace + "/" + cluster + "/" + pair.Leaf.Subject.CommonName
		config.Contexts[context] = &api.Context{Cluster: cluster, AuthInfo: user, Namespace: k.namespace}
		if config.CurrentContext == "" {
			config.CurrentContext = context
		}
	}
	encoded, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode %q: %w", k.path, err)
	}
	return writeFile(k.path, encoded, 0o600)
}

// nameOf returns the name that `oc login` gives to a server's cluster in a kubeconfig.
func nameOf(server string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil || parsed.Host == "" {
		return "", errors.New("master must be a valid URL (e.g. https://10.0.0.1:8443)")
	}
	return strings.ReplaceAll(parsed.Host, ".", "-"), nil
}

// NewKubeconfig returns the `oc adm create-kubeconfig` command.
func NewKubeconfig() *cobra.Command {
	k := kubeconfig{}
	var authorities []string
	command := &cobra.Command{
		Use:   "create-kubeconfig",
		Short: "Create a basic .kubeconfig file from client certs",
		Example: `  # Write a configuration for the client certificate of an administrator
  oc adm create-kubeconfig --client-certificate=admin.crt --client-key=admin.key --certificate-authority=ca.crt \
    --master=https://master.example.com:8443 --kubeconfig=admin.kubeconfig`,
		Run: run(func() (err error) {
			for _, required := range [][2]string{
				{"kubeconfig", k.path}, {"client-certificate", k.cert}, {"client-key", k.key},
				{"certificate-authority", strings.Join(authorities, "")}, {"namespace", k.namespace}, {"master", k.server},
			} {
				if required[1] == "" {
					return fmt.Errorf("%s must be provided", required[0])
				}
			}
			if k.authorities, err = readAuthorities("certificate-authority", authorities); err != nil {
				return err
			}
			return k.write()
		}),
	}
	flags := command.Flags()
	flags.StringVar(&k.server, "master", "https://localhost:8443", "URL of the API server.")
	flags.StringVar(&k.publicServer, "public-master", "", "URL of the API server for users, if it differs.")
	flags.StringSliceVar(&authorities, "certificate-authority", []string{masterDir + "/ca.crt"}, "Files with the CA certificates that verify the API server.")
	flags.StringVar(&k.cert, "client-certificate", "", "Certificate file of the client.")
	flags.StringVar(&k.key, "client-key", "", "Key file of the client.")
	flags.StringVar(&k.namespace, "namespace", "default", "Namespace of the context.")
	flags.StringVar(&k.path, "kubeconfig", ".kubeconfig", "File to write.")
	return command
}

// NewClientConfig returns the `oc adm create-api-client-config` command.
func NewClientConfig(streams genericiooptions.IOStreams) *cobra.Command {
	var ca authority
	var groups, authorities []string
	dir, base, user, days := "", "", "", 0
	k := kubeconfig{namespace: "default"}
	command := &cobra.Command{
		Use:   "create-api-client-config",
		Short: "Create a config file for connecting to the server as a user",
		Example: `  # Create a certificate and a configuration for a user
  oc adm create-api-client-config --client-dir=clients --user=alice --groups=developers \
    --certificate-authority=ca.crt --signer-cert=ca.crt --signer-key=ca.key --signer-serial=ca.serial.txt`,
		Run: run(func() (err error) {
			for _, required := range [][2]string{
				{"client-dir", dir}, {"user", user}, {"master", k.server}, {"certificate-authority", strings.Join(authorities, "")},
			} {
				if required[1] == "" {
					return fmt.Errorf("%s must be provided", required[0])
				}
			}
			if k.authorities, err = readAuthorities("certificate-authority", authorities); err != nil {
				return err
			}
			if err := errors.Join(checkDays(streams.ErrOut, "expire-days", days, certificateDays), ca.check()); err != nil {
				return err
			}
			if base == "" {
				base = user
			}
			base = filepath.Join(dir, filepath.Base(base))
			k.path, k.cert, k.key = base+".kubeconfig", base+".crt", base+".key"
			if err := ca.issue(request{name: user, organizations: groups, days: days}, k.cert, k.key); err != nil {
				return err
			}
			return errors.Join(writeFile(filepath.Join(dir, "ca.crt"), k.authorities, 0o644), k.write())
		}),
	}
	flags := command.Flags()
	ca.addFlags(flags)
	flags.StringVar(&dir, "client-dir", "", "Directory to write to.")
	flags.StringVar(&base, "basename", "", "Base name of the files, without extension. Default: the name of the user.")
	flags.StringVar(&user, "user", "", "Name of the user.")
	flags.StringSliceVar(&groups, "groups", nil, "Groups of the user.")
	flags.StringVar(&k.server, "master", "https://localhost:8443", "URL of the API server.")
	flags.StringVar(&k.publicServer, "public-master", "", "URL of the API server for users, if it differs.")
	flags.StringSliceVar(&authorities, "certificate-authority", []string{masterDir + "/ca.crt"}, "Files with the CA certificates that verify the API server.")
	addDays(flags, &days, "expire-days", certificateDays)
	return command
}
