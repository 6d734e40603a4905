package cli

import (
	"errors"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/component-base/version"
	"k8s.io/kubectl/pkg/cmd/util"
)

// incompleteConfiguration is what the client of OpenShift 3 prints before the first login.
const incompleteConfiguration = `Missing or incomplete configuration info.  Please login or point to an existing, complete config file:

  1. Log in to a server: oc login URL
  2. Via the command-line flag --config
  3. Via the KUBECONFIG environment variable
  4. In your home directory as ~/.kube/config

To view or setup config directly use the 'config' command.`

// connectionFlags returns the flags that all commands have for the connection to a server. A
// connection has the name of the program. If no server is configured, the first request fails:
// kubectl would connect to port 8080 of this machine.
func connectionFlags(name string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	if name == "kubectl" { // with these flags kubectl asks users without credentials for a password
		flags.WithDeprecatedPasswordFlag()
	}
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		if name == "oc" && !hasServer(flags, config) {
			config.Wrap(func(http.RoundTripper) http.RoundTripper { return notConfigured{} })
		}
		build := version.Get()
		config.UserAgent = name + "/" + build.GitVersion + " (" + build.Platform + ") kubernetes/" + build.GitCommit
		return config
	})
	return flags
}

// notConfigured ends the program at the first request. Commands that send no request work without a
// server.
type notConfigured struct{}

// RoundTrip reports that no server is configured.
func (notConfigured) RoundTrip(*http.Request) (*http.Response, error) {
	err := errors.New(incompleteConfiguration)
	util.CheckErr(err)
	return nil, err
}

// hasServer reports whether the server of a connection is configured, and not the default.
func hasServer(flags *genericclioptions.ConfigFlags, config *rest.Config) bool {
	if os.Getenv("KUBERNETES_MASTER") != "" || *flags.APIServer != "" || config.Host != clientcmd.ClusterDefaults.Server {
		return true
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return true // the command reports the error
	}
	for _, cluster := range raw.Clusters {
		if cluster.Server == config.Host {
			return true
		}
	}
	return false
}

// addOldGlobalFlags adds the global flags of OpenShift 3 that have another name in kubectl.
func addOldGlobalFlags(root *cobra.Command) {
	// The commands below "config" have their own flag for the file.
	if config, _, err := root.Find([]string{"config"}); err == nil {
		if flag := config.PersistentFlags().Lookup("kubeconfig"); flag != nil {
			alias := *flag
			alias.Name, alias.Hidden = "config", true
			config.PersistentFlags().AddFlag(&alias)
		}
	}
	if flag := root.PersistentFlags().Lookup("kubeconfig"); flag != nil {
		alias := *flag
		alias.Name, alias.Hidden = "config", true
		root.PersistentFlags().AddFlag(&alias)
	}
}

// warnAboutUnknownFields makes commands that validate manifests warn about unknown fields, as the
// client of OpenShift 3 accepted them. --validate=strict refuses them.
func warnAboutUnknownFields(command *cobra.Command) {
	for _, child := range command.Commands() {
		warnAboutUnknownFields(child)
	}
	if flag := command.Flags().Lookup("validate"); flag != nil && flag.DefValue == "strict" {
		flag.DefValue = "warn"
		util.CheckErr(flag.Value.Set("warn"))
	}
}
