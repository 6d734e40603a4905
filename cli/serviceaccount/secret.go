package serviceaccount

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	kubectlcreate "k8s.io/kubectl/pkg/cmd/create"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewSecrets returns the `oc secrets` command.
func NewSecrets(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "secrets", Aliases: []string{"secret"}, Short: "Manage secrets",
		Long: "Manage service account secrets, and secrets for Git repositories and registries.",
		Run:  util.DefaultSubCommandRun(streams.ErrOut),
	}
	add := newSecretsLink(factory, "add")
	add.Deprecated = "use oc secrets link"
	registry := kubectlcreate.NewCmdCreateSecretDockerRegistry(factory, streams)
	registry.Use = "new-dockercfg NAME --docker-server=SERVER --docker-username=NAME --docker-password=PASSWORD"
	registry.Short = "Create a secret for a registry"
	printOnly(registry)
	command.AddCommand(newSecretsLink(factory, "link"), add, newSecretsUnlink(factory, streams), registry,
		newSecretsNew(factory, streams), newSecretsBasicAuth(factory, streams), newSecretsSSHAuth(factory, streams))
	return command
}

// printOnly makes a command's -o flag imply --dry-run, as in OpenShift 3.
func printOnly(command *cobra.Command) {
	run := command.Run
	command.Run = func(command *cobra.Command, args []string) {
		if flags := command.Flags(); flags.Changed("output") && !flags.Changed("dry-run") {
			util.CheckErr(flags.Set("dry-run", "client"))
		}
		run(command, args)
	}
}

// newSecretsLink returns the `oc secrets link` command, or its deprecated alias `oc secrets add`.
func newSecretsLink(factory util.Factory, name string) *cobra.Command {
	uses := []string{"mount"}
	command := &cobra.Command{
		Use:   name + " SERVICEACCOUNT SECRET...",
		Short: "Link secrets to a service account",
		Long:  "Allow a service account to use secrets: its pods can mount them, or images are pulled with them.",
		Example: `  oc secrets link deployer registry-login --for=pull
  oc secrets link builder clone-key`,
		Args: cobra.MinimumNArgs(2),
		Run: func(command *cobra.Command, args []string) {
			for _, use := range uses {
				if use != "mount" && use != "pull" {
					util.CheckErr(fmt.Errorf("parse --for %q: must be mount or pull", use))
				}
			}
			util.CheckErr(changeAccount(command.Context(), factory, args, true, func(account *corev1.ServiceAccount, secret string) {
				if slices.Contains(uses, "mount") && !mounts(account, secret) {
					account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: secret})
				}
				if slices.Contains(uses, "pull") && !pulls(account, secret) {
					account.ImagePullSecrets = append(account.ImagePullSecrets, corev1.LocalObjectReference{Name: secret})
				}
			}))
		},
	}
	command.Flags().StringSliceVar(&uses, "for", uses, "Use of the secrets: mount, pull or both")
	return command
}

// newSecretsUnlink returns the `oc secrets unlink` command.
func newSecretsUnlink(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use: "unlink SERVICEACCOUNT SECRET...", Short: "Detach secrets from a service account", Args: cobra.MinimumNArgs(2),
		Run: func(command *cobra.Command, args []string) {
			linked := false
			util.CheckErr(changeAccount(command.Context(), factory, args, false, func(account *corev1.ServiceAccount, secret string) {
				linked = linked || mounts(account, secret) || pulls(account, secret)
				account.Secrets = slices.DeleteFunc(account.Secrets, func(s corev1.ObjectReference) bool { return s.Name == secret })
				account.ImagePullSecrets = slices.DeleteFunc(account.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == secret })
			}))
			util.CheckErr(reportUnlinked(command.Context(), factory, streams, args, linked))
		},
	}
}

// reportUnlinked returns an error if a secret does not exist, or if no secret was linked. A secret
// that does not exist can still be linked. In that case, it is unlinked despite the error.
func reportUnlinked(ctx context.Context, factory util.Factory, streams genericiooptions.IOStreams, args []string, linked bool) error {
	a, err := accountOf(factory, afterType(args[0]))
	if err != nil {
		return err
	}
	var missing []error
	for _, secret := range args[1:] {
		name := afterType(secret)
		if _, err := a.client.CoreV1().Secrets(a.namespace).Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			missing = append(missing, fmt.Errorf("secret %q not found", name))
		}
	}
	switch {
	case len(missing) > 0 && linked:
		fmt.Fprintf(streams.ErrOut, "Unlinked deleted secrets from service account %q\n", a.name)
		return errors.Join(missing...)
	case !linked:
		return errors.Join(append(missing, errors.New("No valid secrets found or secrets not linked to service account"))...)
	}
	return nil
}

func mounts(account *corev1.ServiceAccount, secret string) bool {
	return slices.ContainsFunc(account.Secrets, func(s corev1.ObjectReference) bool { return s.Name == secret })
}

func pulls(account *corev1.ServiceAccount, secret string) bool {
	return slices.ContainsFunc(account.ImagePullSecrets, func(s corev1.LocalObjectReference) bool { return s.Name == secret })
}

// changeAccount updates the service account args[0]. It calls change for each secret in the other
// arguments. If exist is true, the secrets must exist.
func changeAccount(ctx context.Context, factory util.Factory, args []string, exist bool, change func(*corev1.ServiceAccount, string)) error {
	a, err := accountOf(factory, afterType(args[0]))
	if err != nil {
		return err
	}
	for _, secret := range args[1:] {
		if !exist {
			break
		}
		if _, err := a.client.CoreV1().Secrets(a.namespace).Get(ctx, afterType(secret), metav1.GetOptions{}); err != nil {
			return err
		}
	}
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		account, err := a.client.CoreV1().ServiceAccounts(a.namespace).Get(ctx, a.name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		for _, secret := range args[1:] {
			change(account, afterType(secret))
		}
		_, err = a.client.CoreV1().ServiceAccounts(a.namespace).Update(ctx, account, metav1.UpdateOptions{})
		return err
	})
}

// afterType returns a name without its optional type prefix, such as secret/.
func afterType(arg string) string {
	if _, name, ok := strings.Cut(arg, "/"); ok {
		return name
	}
	return arg
}
