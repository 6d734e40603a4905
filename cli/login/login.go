// Package login implements `oc login`, `oc logout` and `oc whoami`, and their changes to the
// kubeconfig.
package login

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd/util"
)

// loginOptions holds the state of `oc login`.
type loginOptions struct {
	genericiooptions.IOStreams
	server, user, password, token string
	authority                     string
	namespace                     string // value of --namespace, which is the project to use
	insecure                      bool

	paths  *clientcmd.PathOptions
	config *api.Config // the kubeconfig's content
	merged *api.Config // config, with the clusters and users in the administrator's kubeconfig
	input  *bufio.Reader
}

// defaultServer is the API server's address on this machine.
const defaultServer = "https://localhost:8443"

// New returns the `oc login` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &loginOptions{IOStreams: streams, paths: clientcmd.NewDefaultPathOptions(), input: bufio.NewReader(streams.In)}
	command := &cobra.Command{
		Use:   "login [URL]",
		Short: "Log in to a server",
		Long: `Log in to a server and save the connection for later commands.

First-time users of the client should run this command to connect to a server,
establish an authenticated session, and save the connection to the configuration
file, by default ~/.kube/config.

The command prompts for values that are neither arguments nor flags. With --certificate-authority, the server's certificate must be signed by
that authority; with --insecure-skip-tls-verify, any certificate is accepted.`,
		Example: `  # Log in interactively
  oc login

  # Log in to the given server with the given certificate authority file
  oc login localhost:8443 --certificate-authority=/path/to/cert.crt

  # Log in to the given server with the given credentials (will not prompt interactively)
  oc login localhost:8443 --username=myuser --password=mypass`,
		Run: func(cmd *cobra.Command, args []string) {
			util.CheckErr(o.complete(cmd, args))
			util.CheckErr(o.run(cmd.Context()))
		},
	}
	// kubectl's user name and password flags are not among oc's global flags, so login defines them
	// itself.
	command.Flags().StringVarP(&o.user, "username", "u", "", "Username for server")
	command.Flags().StringVarP(&o.password, "password", "p", "", "Password for server")
	return command
}

// complete parses the flags, reads the kubeconfig, and determines the server.
func (o *loginOptions) complete(cmd *cobra.Command, args []string) (err error) {
	o.token, _ = cmd.Flags().GetString("token")
	o.server, _ = cmd.Flags().GetString("server")
	o.authority, _ = cmd.Flags().GetString("certificate-authority")
	o.insecure, _ = cmd.Flags().GetBool("insecure-skip-tls-verify")
	o.namespace, _ = cmd.Flags().GetString("namespace")
	if file, _ := cmd.Flags().GetString("kubeconfig"); file != "" {
		o.paths.LoadingRules.ExplicitPath = file
	}
	host := hostFile(os.Getenv)
	if host != "" && os.Getenv(clientcmd.RecommendedConfigPathEnvVar) == host {
		// Do not change the administrator's file. Save the login in the user's own kubeconfig.
		o.paths.EnvVar = ""
		o.paths.LoadingRules.Precedence = []string{clientcmd.RecommendedHomeFile}
		o.paths.GlobalFile = clientcmd.RecommendedHomeFile
	}
	if len(args) > 1 {
		return util.UsageErrorf(cmd, "Only the server URL may be specified as an argument")
	}
	if len(args) == 1 {
		if o.server != "" && o.server != args[0] {
			return util.UsageErrorf(cmd, "the server is set twice, as an argument and with --server")
		}
		o.server = args[0]
	}
	if o.token != "" && (o.user != "" || o.password != "") {
		return util.UsageErrorf(cmd, "--token and --username or --password are mutually exclusive")
	}
	if o.config, err = o.paths.GetStartingConfig(); err != nil {
		return err
	}
	o.merged = o.config.DeepCopy()
	if administrator, err := clientcmd.LoadFromFile(host); err == nil {
		addMissing(o.merged.Clusters, administrator.Clusters)
		addMissing(o.merged.AuthInfos, administrator.AuthInfos)
	}
	return o.findServer()
}

func addMissing[T any](to, from map[string]T) {
	for name, value := range from {
		if _, ok := to[name]; !ok {
			to[name] = value
		}
	}
}

// findServer determines the server from the command line or the current context, or by prompting.
func (o *loginOptions) findServer() (err error) {
	if o.server == "" {
		if current, ok := o.config.Contexts[o.config.CurrentContext]; ok && o.config.Clusters[current.Cluster] != nil {
			o.server = o.config.Clusters[current.Cluster].Server
		}
	}
	if o.server == "" {
		if o.server, err = ask(o.IOStreams, o.input, fmt.Sprintf("Server [%s]: ", defaultServer), defaultServer); err != nil {
			return err
		}
	}
	o.server, err = normalizeServer(o.server)
	return err
}

// run connects, authenticates, chooses a project and saves the connection.
func (o *loginOptions) run(ctx context.Context) error {
	cluster, err := o.connect(ctx)
	if err != nil {
		return err
	}
	identity, method, err := o.authenticate(ctx, cluster)
	if err != nil {
		return err
	}
	first := len(o.config.Contexts) == 0
	projects := listProjects(ctx, identity.config)
	namespace := o.chooseProject(projects)
	if err := o.save(cluster, identity, namespace); err != nil {
		return err
	}
	fmt.Fprintf(o.Out, "%s\n\n", method)
	printProjects(o.Out, projects, namespace, mayRequestProjects(ctx, identity.config))
	if first {
		fmt.Fprintln(o.Out, "Welcome! See 'oc help' to get started.")
	}
	return nil
}

// identity is the user that has logged in, with a connection that uses the user's credentials.
type identity struct {
	name   string
	info   *api.AuthInfo
	config *rest.Config
}

// authenticate logs in with the token on the command line, existing credentials, or a user name and
// password. It also returns a message for the user.
func (o *loginOptions) authenticate(ctx context.Context, cluster *api.Cluster) (*identity, string, error) {
	if o.token != "" {
		identity, err := o.try(ctx, cluster, &api.AuthInfo{Token: o.token})
		if err != nil {
			return nil, "", fmt.Errorf("The token provided is invalid or expired.\n\n%w", err)
		}
		return identity, fmt.Sprintf("Logged into %q as %q using the token provided.", cluster.Server, identity.name), nil
	}
	if o.password == "" {
		for _, info := range o.candidates(cluster) {
			identity, err := o.try(ctx, cluster, info)
			if err == nil && (o.user == "" || identity.name == o.user) {
				return identity, fmt.Sprintf("Logged into %q as %q using existing credentials.", cluster.Server, identity.name), nil
			}
		}
	}
	token, err := requestToken(ctx, cluster, challenges{credentials: o.credentials(cluster.Server), preferPassword: o.user != ""})
	if err != nil {
		return nil, "", err
	}
	identity, err := o.try(ctx, cluster, &api.AuthInfo{Token: token})
	if err != nil {
		return nil, "", err
	}
	return identity, "Login successful.", nil
}

// candidates returns the credentials in the kubeconfig that can be tried on a server. Without
// --username, these are the credentials of the current context if the context is for this server.
// With --username, these are the user's credentials in contexts for this server, and the user's
// client certificates. The client never sends tokens or passwords for other servers to this server.
func (o *loginOptions) candidates(cluster *api.Cluster) (infos []*api.AuthInfo) {
	if o.user == "" {
		current := o.config.Contexts[o.config.CurrentContext]
		if current != nil && o.config.Clusters[current.Cluster] != nil && o.config.Clusters[current.Cluster].Server == cluster.Server && o.config.AuthInfos[current.AuthInfo] != nil {
			return []*api.AuthInfo{o.config.AuthInfos[current.AuthInfo]}
		}
		return nil
	}
	ofServer := map[string]bool{}
	for _, context := range o.merged.Contexts {
		if c := o.merged.Clusters[context.Cluster]; c != nil && c.Server == cluster.Server {
			ofServer[context.AuthInfo] = true
		}
	}
	for name, info := range o.merged.AuthInfos {
		if user, _, _ := strings.Cut(name, "/"); user == o.user && (ofServer[name] || onlyCertificate(info)) {
			infos = append(infos, info)
		}
	}
	return infos
}

// onlyCertificate reports whether credentials consist only of a client certificate, so that the
// client does not send a secret to the server.
func onlyCertificate(info *api.AuthInfo) bool {
	hasCertificate := info.ClientCertificate != "" || len(info.ClientCertificateData) > 0
	return hasCertificate && info.Token == "" && info.TokenFile == "" && info.Username == "" && info.Password == "" && info.Exec == nil && info.AuthProvider == nil
}

// try logs in with the given credentials, and returns the user that they belong to.
func (o *loginOptions) try(ctx context.Context, cluster *api.Cluster, info *api.AuthInfo) (*identity, error) {
	config, err := connection(cluster, info)
	if err != nil {
		return nil, err
	}
	name, err := whoIs(ctx, config)
	if err != nil {
		return nil, err
	}
	return &identity{name: name, info: info, config: config}, nil
}

// connection returns the client configuration for a server and credentials.
func connection(cluster *api.Cluster, info *api.AuthInfo) (*rest.Config, error) {
	config := api.NewConfig()
	config.Clusters["c"], config.AuthInfos["u"] = cluster, info
	config.Contexts["x"] = &api.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	return clientcmd.NewDefaultClientConfig(*config, nil).ClientConfig()
}

// credentials returns a function that returns the user name and the password. The function prompts
// for a value that the command line does not contain.
func (o *loginOptions) credentials(server string) func(realm string) (user, password string, err error) {
	return func(realm string) (user, password string, err error) {
		user, password = o.user, o.password
		if user == "" || password == "" {
			fmt.Fprintf(o.ErrOut, "Authentication required for %s (%s)\n", server, realm)
		}
		if user == "" {
			if user, err = ask(o.IOStreams, o.input, "Username: ", ""); err != nil {
				return "", "", err
			}
		} else if password == "" {
			fmt.Fprintf(o.ErrOut, "Username: %s\n", user)
		}
		if password == "" {
			password, err = AskHidden(o.IOStreams, o.input, "Password: ")
		}
		return user, password, err
	}
}

// chooseProject returns the project for later commands. In order of precedence, this is the
// --namespace project, the current project, the project named default, or the first project that
// the user can access. If the user has no project, chooseProject returns "". As in OpenShift 3, the
// login succeeds with a warning if the user is not a member of the --namespace project.
func (o *loginOptions) chooseProject(projects []string) string {
	if slices.Contains(projects, o.namespace) {
		return o.namespace
	}
	if o.namespace != "" {
		fmt.Fprintf(o.ErrOut, "Warning: you are not a member of project %q\n", o.namespace)
	}
	for name, context := range o.config.Contexts {
		if name == o.config.CurrentContext && slices.Contains(projects, context.Namespace) {
			return context.Namespace
		}
	}
	switch {
	case len(projects) == 0:
		return ""
	case slices.Contains(projects, "default"):
		return "default"
	}
	return projects[0]
}

// explainLogin returns the error of a failed login in OpenShift 3's wording.
func explainLogin(err error) error {
	if apierrors.IsUnauthorized(err) {
		return errCredentials
	}
	return err
}
