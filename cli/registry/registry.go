// Package registry implements `oc registry` and `oc adm registry`. These commands print the address
// of the cluster's image registry and log in to it.
package registry

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
	registryname "github.com/google/go-containerregistry/pkg/name"
	registrytransport "github.com/google/go-containerregistry/pkg/v1/remote/transport"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/homedir"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns the `oc registry` command.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	registry := &cobra.Command{Use: "registry", Short: "Commands for the cluster's image registry", Run: util.DefaultSubCommandRun(streams.ErrOut)}
	registry.AddCommand(newRegistryInfo(factory, streams), newRegistryLogin(factory, streams))
	return registry
}

// registryNames contains the registry's addresses. internal is for pods and nodes. public is for
// other clients and can be empty. direct is on the API server's host.
type registryNames struct{ internal, public, direct string }

// lookupTimeout is the timeout for resolving a host name.
const lookupTimeout = 2 * time.Second

// preferred returns the public address if this machine can resolve it, otherwise the internal
// address. If this machine can resolve neither address, preferred returns the direct address.
func (n registryNames) preferred(ctx context.Context) string {
	for _, address := range []string{n.public, n.internal} {
		if address != "" && resolves(ctx, address) {
			return address
		}
	}
	return n.direct
}

// resolves reports whether the host in address can be resolved to an IP address.
func resolves(ctx context.Context, address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address // the address has no port
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	return err == nil && len(addresses) > 0
}

// directAddress returns the registry's address on the API server's host, which the registry's
// certificate also covers. It returns internal if it cannot parse server or internal.
func directAddress(server, internal string) string {
	_, port, err := net.SplitHostPort(internal)
	parsed, parseErr := url.Parse(server)
	if err != nil || parseErr != nil || parsed.Hostname() == "" {
		return internal
	}
	return net.JoinHostPort(parsed.Hostname(), port)
}

// registryInfo holds the state of `oc registry info`.
type registryInfo struct {
	internal, public, check, quiet bool
}

func newRegistryInfo(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	i := &registryInfo{}
	command := &cobra.Command{
		Use:   "info",
		Short: "Print the address of the cluster's image registry",
		Long: "Print an address of the cluster's image registry that this machine can resolve: the public address, or else the address for\n" +
			"pods and nodes, or else the address on the host of the API server.",
		Args: cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			config, namespace := connect(factory)
			names, err := findRegistry(command.Context(), config, namespace)
			util.CheckErr(err)
			util.CheckErr(i.run(command.Context(), config, names, streams.Out))
		},
	}
	flags := command.Flags()
	flags.BoolVar(&i.internal, "internal", false, "Print the address for pods and nodes")
	flags.BoolVar(&i.public, "public", false, "Print the address for clients outside the cluster")
	flags.BoolVar(&i.check, "check", false, "Check that the registry responds at the address")
	flags.BoolVarP(&i.quiet, "quiet", "q", false, "Print nothing. The exit code reports whether the registry exists")
	return command
}

func (i *registryInfo) run(ctx context.Context, config *rest.Config, names registryNames, out io.Writer) error {
	var host string
	switch {
	case i.internal && i.public:
		return errors.New("only one of --internal or --public may be specified at a time")
	case i.internal:
		host = names.internal
	case i.public:
		host = names.public
	default:
		host = names.preferred(ctx)
	}
	if host == "" {
		return errors.New("the registry has no public address: the cluster's administrator sets imagePolicyConfig.externalRegistryHostname or routingConfig.subdomain")
	}
	if i.check {
		if err := checkRegistry(ctx, config, host); err != nil {
			return err
		}
	}
	if !i.quiet {
		fmt.Fprintln(out, host)
	}
	return nil
}

// checkRegistry checks a registry's health. The registry's certificate must be signed by the
// cluster's CA or a CA that the system trusts.
func checkRegistry(ctx context.Context, config *rest.Config, host string) error {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.ServerName, anonymous.Timeout = "", 10*time.Second
	client, err := rest.HTTPClientFor(anonymous)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/healthz", nil)
	if err != nil {
		return fmt.Errorf("check registry %q: %w", host, err)
	}
	resp, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("check registry %q: %w", host, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("check registry %q: it responds with %s", host, resp.Status)
	}
	return nil
}

func connect(factory util.Factory) (*rest.Config, string) {
	config, err := factory.ToRESTConfig()
	util.CheckErr(err)
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	util.CheckErr(err)
	return config, namespace
}

// Find returns the internal address of the cluster's registry, which pods and nodes use.
func Find(ctx context.Context, config *rest.Config, namespace string) (string, error) {
	names, err := findRegistry(ctx, config, namespace)
	return names.internal, err
}

// findRegistry returns the registry's addresses. It gets them from the status of an image stream
// that it creates in a dry run.
func findRegistry(ctx context.Context, config *rest.Config, namespace string) (registryNames, error) {
	client, err := imageclient.NewForConfig(config)
	if err != nil {
		return registryNames{}, err
	}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "registry-info-" + strings.ToLower(rand.Text())}}
	result, err := client.ImageStreams(namespace).Create(ctx, stream, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return registryNames{}, fmt.Errorf("find registry: %w", err)
	}
	internal, _, _ := strings.Cut(result.Status.DockerImageRepository, "/")
	public, _, _ := strings.Cut(result.Status.PublicDockerImageRepository, "/")
	if internal == "" {
		return registryNames{}, errors.New("the cluster has no image registry")
	}
	return registryNames{internal, public, directAddress(config.Host, internal)}, nil
}

// registryLogin holds the state of `oc registry login`, which writes credentials to a file.
type registryLogin struct {
	file, host, account string
	insecure, skipCheck bool
	out, errOut         io.Writer
}

func newRegistryLogin(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	l := &registryLogin{out: streams.Out, errOut: streams.ErrOut}
	command := &cobra.Command{
		Use:   "login",
		Short: "Log in to the cluster's image registry",
		Long:  "Write your token, or the token of a service account, to the file from which docker, podman and skopeo read credentials.",
		Args:  cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			config, namespace := connect(factory)
			util.CheckErr(l.run(command.Context(), config, namespace))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&l.file, "registry-config", "a", "", "File to write. The default is ~/.docker/config.json")
	flags.StringVar(&l.file, "to", "", "File to write, or - to print the content")
	flags.StringVar(&l.host, "registry", "", "Host and port of the registry, instead of the address that the cluster reports")
	flags.BoolVar(&l.insecure, "insecure", false, "Accept a registry without TLS, or whose certificate cannot be verified")
	flags.BoolVar(&l.skipCheck, "skip-check", false, "Do not check the credentials with the registry")
	flags.StringVarP(&l.account, "service-account", "z", "", "Log in as a service account of the project")
	return command
}

func (l *registryLogin) run(ctx context.Context, config *rest.Config, namespace string) error {
	user, token := "user", config.BearerToken
	if l.account != "" {
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return err
		}
		request, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, l.account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("get a token of service account %q: %w", l.account, err)
		}
		user, token = "serviceaccount", request.Status.Token
	}
	if token == "" {
		return errors.New("you are not logged in with a token: use oc login, or --service-account")
	}
	chosen := l.host != ""
	if !chosen {
		names, err := findRegistry(ctx, config, namespace)
		if err != nil {
			return err
		}
		l.host = names.preferred(ctx)
	}
	if !l.skipCheck {
		err := l.check(ctx, config, user, token)
		var unresolved *net.DNSError
		switch {
		case err == nil:
		case !chosen && errors.As(err, &unresolved):
			// This is not an error, because it is possible that only the cluster's hosts can
			// resolve the registry's name.
			fmt.Fprintf(l.errOut, "note: the credentials are not checked, because %s does not resolve on this machine\n", l.host)
		default:
			return fmt.Errorf("unable to check your credentials - pass --skip-check to bypass this error: %w", err)
		}
	}
	return l.write(user, token)
}

// check verifies the credentials by logging in to the registry.
func (l *registryLogin) check(ctx context.Context, config *rest.Config, user, token string) error {
	anonymous := rest.AnonymousClientConfig(config)
	anonymous.ServerName = ""
	if l.insecure {
		anonymous.TLSClientConfig = rest.TLSClientConfig{Insecure: true}
	}
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		return err
	}
	var options []registryname.Option
	if l.insecure {
		options = append(options, registryname.Insecure)
	}
	registry, err := registryname.NewRegistry(l.host, options...)
	if err != nil {
		return fmt.Errorf("parse --registry: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	authenticated, err := registrytransport.NewWithContext(ctx, registry, &authn.Basic{Username: user, Password: token}, transport, nil)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, registry.Scheme()+"://"+l.host+"/v2/", nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: authenticated}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the registry responds with %s", response.Status)
	}
	return nil
}

// write adds the credentials to the file. If the file is "-", it prints them instead.
func (l *registryLogin) write(user, token string) error {
	file := l.file
	if file == "" {
		file = filepath.Join(homedir.HomeDir(), ".docker", "config.json")
	}
	content := map[string]any{}
	if file != "-" {
		data, err := os.ReadFile(file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("read credentials: %w", err)
		}
		if len(data) > 0 {
			if err := json.Unmarshal(data, &content); err != nil || content == nil {
				return fmt.Errorf("read credentials %q: %w", file, cmp.Or(err, errors.New("the file contains null")))
			}
		}
	}
	auths, _ := content["auths"].(map[string]any)
	if auths == nil {
		auths = map[string]any{}
	}
	auths[l.host] = map[string]string{"auth": base64.StdEncoding.EncodeToString([]byte(user + ":" + token))}
	content["auths"] = auths
	data, err := json.MarshalIndent(content, "", "  ")
	if err != nil {
		return err
	}
	if file == "-" {
		_, err := fmt.Fprintln(l.out, string(data))
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	fmt.Fprintf(l.out, "Saved credentials for %s into %s\n", l.host, file)
	return nil
}
