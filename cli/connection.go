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

// incompleteConfiguration is the message that OpenShift 3's client prints before the first login.
const incompleteConfiguration = `Missing or incomplete configuration info.  Please login or point to an existing, complete config file:

  1. Log in to a server: oc login URL
  2. Via the command-line flag --config
  3. Via the KUBECONFIG environment variable
  4. In your home directory as ~/.kube/config

To view or setup config directly use the 'config' command.`

// connectionFlags returns the flags that specify how commands connect to a server. name is the
// program's name, which is part of the user agent. If no server is configured, oc exits on the
// first request, whereas kubectl uses its default server, port 8080 on this machine.
// connectionFlags disables client-go's limit of five requests per second, because the server limits
// the requests with priority levels.
func connectionFlags(name string) *genericclioptions.ConfigFlags {
	flags := genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50)
	if name == "kubectl" { // these flags make kubectl prompt for missing passwords
		flags.WithDeprecatedPasswordFlag()
	}
	flags.WithWrapConfigFn(func(config *rest.Config) *rest.Config {
		if name == "oc" && !hasServer(flags, config) {
			config.Wrap(func(http.RoundTripper) http.RoundTripper { return notConfigured{} })
		}
		build := version.Get()
		config.QPS = -1
		config.UserAgent = name + "/" + build.GitVersion + " (" + build.Platform + ") kubernetes/" + build.GitCommit[:min(shortCommit, len(build.GitCommit))]
		return config
	})
	return flags
}

// shortCommit is the length of the commit hash in the user agent, as in client-go's user agent.
const shortCommit = 7

// notConfigured is a transport that exits on the first request. Therefore, commands that send no
// requests work even if no server is configured.
type notConfigured struct{}

// RoundTrip prints that no server is configured, and exits.
func (notConfigured) RoundTrip(*http.Request) (*http.Response, error) {
	err := errors.New(incompleteConfiguration)
	util.CheckErr(err)
	return nil, err
}

// hasServer reports whether flags, the environment or a kubeconfig specify the server to connect
// to.
func hasServer(flags *genericclioptions.ConfigFlags, config *rest.Config) bool {
	if os.Getenv("KUBERNETES_MASTER") != "" || *flags.APIServer != "" || config.Host != clientcmd.ClusterDefaults.Server {
		return true
	}
	raw, err := flags.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return true // the command itself reports the error
	}
	for _, cluster := range raw.Clusters {
		if cluster.Server == config.Host {
			return true
		}
	}
	return false
}

// addOldGlobalFlags adds OpenShift 3's global flags that have different names in kubectl.
func addOldGlobalFlags(root *cobra.Command) {
	// The subcommands of "config" have their own kubeconfig flag.
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

// warnAboutUnknownFields changes the default of --validate from strict to warn in all commands that
// have the flag, because OpenShift 3's client accepted unknown fields.
func warnAboutUnknownFields(command *cobra.Command) {
	for _, child := range command.Commands() {
		warnAboutUnknownFields(child)
	}
	if flag := command.Flags().Lookup("validate"); flag != nil && flag.DefValue == "strict" {
		flag.DefValue = "warn"
		util.CheckErr(flag.Value.Set("warn"))
	}
}
