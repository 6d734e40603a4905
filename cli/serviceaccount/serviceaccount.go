// Package serviceaccount implements `oc serviceaccounts` and `oc secrets`, which manage service
// accounts' tokens and secrets.
package serviceaccount

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/kubectl/pkg/cmd/util"
)

// New returns the `oc serviceaccounts` command, which manages service account tokens.
func New(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "serviceaccounts", Aliases: []string{"sa"}, Short: "Manage service accounts in your project",
		Long: "Manage service accounts in your project and the tokens with which programs authenticate.",
		Run:  util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newGetToken(factory, streams), newNewToken(factory, streams), newCreateKubeconfig(factory, streams))
	return command
}

// account identifies the service account that a command operates on.
type account struct {
	client          kubernetes.Interface
	namespace, name string
}

func accountOf(factory util.Factory, name string) (a account, err error) {
	if a.client, err = factory.KubernetesClientSet(); err != nil {
		return a, err
	}
	a.name = name
	a.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace()
	return a, err
}

// newGetToken returns the `oc serviceaccounts get-token` command.
func newGetToken(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "get-token SERVICE_ACCOUNT_NAME",
		Short: "Get a token assigned to a service account",
		Long: `Print a token of a service account, without a line break if the output is not a terminal.

The token comes from a token secret. If the account has no such secret, it gets a token that expires after an hour.
To create a permanent token, use "oc serviceaccounts new-token".`,
		Example: `  # Log in as the service account robot
  oc login --token "$(oc serviceaccounts get-token robot)"`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			a, err := accountOf(factory, args[0])
			util.CheckErr(err)
			token, lasting, err := a.token(command.Context())
			util.CheckErr(err)
			if !lasting {
				fmt.Fprintf(streams.ErrOut, "Service account %q has no token secret; this token expires after an hour.\n", a.name)
			}
			fmt.Fprint(streams.Out, token)
			endLine(streams)
		},
	}
}

// endLine prints a newline only if the output is a terminal, so that programs read only the token.
func endLine(streams genericiooptions.IOStreams) {
	if file, ok := streams.Out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		fmt.Fprintln(streams.Out)
	}
}

// token returns a token from one of the account's secrets. If none of them contains a token, it
// requests a token, which expires. lasting reports whether the token is from a secret.
func (a account) token(ctx context.Context) (token string, lasting bool, err error) {
	if _, err := a.client.CoreV1().ServiceAccounts(a.namespace).Get(ctx, a.name, metav1.GetOptions{}); err != nil {
		return "", false, err
	}
	secrets, err := a.client.CoreV1().Secrets(a.namespace).List(ctx, metav1.ListOptions{FieldSelector: "type=" + string(corev1.SecretTypeServiceAccountToken)})
	if err != nil {
		return "", false, err
	}
	for _, secret := range secrets.Items {
		if secret.Annotations[corev1.ServiceAccountNameKey] == a.name && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
			return string(secret.Data[corev1.ServiceAccountTokenKey]), true, nil
		}
	}
	response, err := a.client.CoreV1().ServiceAccounts(a.namespace).CreateToken(ctx, a.name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return "", false, fmt.Errorf("get token of service account %q: %w", a.name, err)
	}
	return response.Status.Token, false, nil
}

// newNewToken returns the `oc serviceaccounts new-token` command.
func newNewToken(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	labels, timeout := "", time.Duration(0)
	command := &cobra.Command{
		Use:   "new-token SERVICE_ACCOUNT_NAME",
		Short: "Generate a new token for a service account",
		Long:  "Create a token secret for a service account and print its token. The token is valid until the secret is deleted.",
		Example: `  # Create a token of the service account robot, in a secret with labels
  oc serviceaccounts new-token robot --labels=foo=bar,zip=zap`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			a, err := accountOf(factory, args[0])
			util.CheckErr(err)
			parsed, err := metav1.ParseToLabelSelector(labels)
			util.CheckErr(err)
			if len(parsed.MatchExpressions) > 0 {
				util.CheckErr(fmt.Errorf("parse --labels %q: must be KEY=VALUE pairs, separated by commas", labels))
			}
			token, err := a.newToken(command.Context(), parsed.MatchLabels, timeout)
			util.CheckErr(err)
			fmt.Fprint(streams.Out, token)
			endLine(streams)
		},
	}
	command.Flags().StringVarP(&labels, "labels", "l", "", "Labels of the secret, as KEY=VALUE pairs, separated by commas.")
	command.Flags().DurationVar(&timeout, "timeout", 30*time.Second, "Maximum time to wait for the token.")
	return command
}

// newToken creates a token secret, waits until the server has added a token to it, and returns the
// token.
func (a account) newToken(ctx context.Context, labels map[string]string, timeout time.Duration) (token string, err error) {
	if _, err := a.client.CoreV1().ServiceAccounts(a.namespace).Get(ctx, a.name, metav1.GetOptions{}); err != nil {
		return "", err
	}
	secrets := a.client.CoreV1().Secrets(a.namespace)
	result, err := secrets.Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: a.name + "-token-", Labels: maps.Clone(labels), Annotations: map[string]string{corev1.ServiceAccountNameKey: a.name},
		},
		Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, timeout, true, func(ctx context.Context) (bool, error) {
		secret, err := secrets.Get(ctx, result.Name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		token = string(secret.Data[corev1.ServiceAccountTokenKey])
		return token != "", nil
	})
	if err != nil {
		return "", fmt.Errorf("wait for the token of secret %q: %w", result.Name, err)
	}
	return token, nil
}

// kubeconfigOptions holds the state of `oc serviceaccounts create-kubeconfig`.
type kubeconfigOptions struct {
	streams   genericiooptions.IOStreams
	account   account
	current   api.Config
	namespace string // namespace of the context in the kubeconfig
}

// newCreateKubeconfig returns the `oc serviceaccounts create-kubeconfig` command.
func newCreateKubeconfig(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	o := &kubeconfigOptions{streams: streams}
	command := &cobra.Command{
		Use:   "create-kubeconfig SERVICE_ACCOUNT_NAME",
		Short: "Generate a kubeconfig file for a service account",
		Long:  "Print a kubeconfig that a program can use to authenticate as a service account.",
		Example: `  # Create a kubeconfig of the service account robot
  oc serviceaccounts create-kubeconfig robot > robot.kubeconfig`,
		Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(o.complete(factory, args[0]))
			util.CheckErr(o.run(command.Context()))
		},
	}
	command.Flags().StringVar(&o.namespace, "with-namespace", "", "Project of the file's context. The default is the project of the service account.")
	return command
}

func (o *kubeconfigOptions) complete(factory util.Factory, name string) (err error) {
	if o.account, err = accountOf(factory, name); err != nil {
		return err
	}
	o.namespace = cmp.Or(o.namespace, o.account.namespace)
	o.current, err = factory.ToRawKubeConfigLoader().RawConfig()
	return err
}

func (o *kubeconfigOptions) run(ctx context.Context) error {
	token, lasting, err := o.account.token(ctx)
	if err != nil {
		return err
	}
	if !lasting {
		fmt.Fprintf(o.streams.ErrOut, "Service account %q has no token secret; the token of this file expires after an hour.\n", o.account.name)
	}
	content, err := o.account.kubeconfig(o.current, token, o.namespace)
	if err != nil {
		return err
	}
	_, err = o.streams.Out.Write(content)
	return err
}

// kubeconfig returns a kubeconfig that contains the current context of present. The user in this
// kubeconfig is the account, with the given token.
func (a account) kubeconfig(present api.Config, token, namespace string) ([]byte, error) {
	if err := api.FlattenConfig(&present); err != nil {
		return nil, err
	}
	context := present.Contexts[present.CurrentContext]
	if context == nil || present.Clusters[context.Cluster] == nil {
		return nil, errors.New("create kubeconfig: the current kubeconfig has no cluster; log in first")
	}
	return clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{context.Cluster: present.Clusters[context.Cluster]},
		AuthInfos:      map[string]*api.AuthInfo{a.name: {Token: token}},
		Contexts:       map[string]*api.Context{a.name: {Cluster: context.Cluster, AuthInfo: a.name, Namespace: namespace}},
		CurrentContext: a.name,
	})
}
