package cli

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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

// newRegistry makes `oc registry`.
func newRegistry(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	registry := &cobra.Command{Use: "registry", Short: "Commands for the cluster's image registry", Run: util.DefaultSubCommandRun(streams.ErrOut)}
	registry.AddCommand(newRegistryInfo(factory, streams), newRegistryLogin(factory, streams))
	return registry
}

func newRegistryInfo(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "info",
		Short: "Print the address of the cluster's image registry",
		Args:  cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			config, namespace := connect(factory)
			host, err := registryHost(command.Context(), config, namespace)
			util.CheckErr(err)
			fmt.Fprintln(streams.Out, host)
		},
	}
}

func connect(factory util.Factory) (*rest.Config, string) {
	config, err := factory.ToRESTConfig()
	util.CheckErr(err)
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	util.CheckErr(err)
	return config, namespace
}

// registryHost asks the cluster where the images of an image stream would be, without making one.
func registryHost(ctx context.Context, config *rest.Config, namespace string) (string, error) {
	client, err := imageclient.NewForConfig(config)
	if err != nil {
		return "", err
	}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "registry-info-" + strings.ToLower(rand.Text())}}
	made, err := client.ImageStreams(namespace).Create(ctx, stream, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return "", fmt.Errorf("ask for the registry: %w", err)
	}
	host, _, _ := strings.Cut(made.Status.DockerImageRepository, "/")
	if host == "" {
		return "", errors.New("the cluster has no image registry")
	}
	return host, nil
}

// registryLogin writes credentials for the registry where clients of registries look for them.
type registryLogin struct {
	file, host, account string
	out                 io.Writer
}

func newRegistryLogin(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	l := &registryLogin{out: streams.Out}
	command := &cobra.Command{
		Use:   "login",
		Short: "Log in to the cluster's image registry",
		Long:  "Writes the token that you are logged in with, or one of a service account, into the file where docker, podman and skopeo look for credentials.",
		Args:  cobra.NoArgs,
		Run: func(command *cobra.Command, _ []string) {
			config, namespace := connect(factory)
			util.CheckErr(l.run(command.Context(), config, namespace))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&l.file, "registry-config", "a", "", "The file to write, ~/.docker/config.json by default")
	flags.StringVar(&l.file, "to", "", "The file to write; `-` prints it")
	flags.StringVar(&l.host, "registry", "", "Host and port of the registry, instead of what the cluster calls it")
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
		issued, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, l.account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("get a token of service account %q: %w", l.account, err)
		}
		user, token = "serviceaccount", issued.Status.Token
	}
	if token == "" {
		return errors.New("you are not logged in with a token: use oc login, or --service-account")
	}
	if l.host == "" {
		host, err := registryHost(ctx, config, namespace)
		if err != nil {
			return err
		}
		l.host = host
	}
	return l.write(user, token)
}

// write adds the credentials to those that the file has.
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
			if err := json.Unmarshal(data, &content); err != nil {
				return fmt.Errorf("read credentials %q: %w", file, err)
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
