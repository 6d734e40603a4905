package serviceaccount

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/cli/login"
	"github.com/slipway-platform/slipway/cli/objects"
)

// newSecret holds the state of a command that creates a secret from files and values.
type newSecret struct {
	factory util.Factory
	genericiooptions.IOStreams
	output *objects.Output // nil if the command has no -o flag

	secret corev1.Secret
	files  map[string]string // maps keys to paths; keys with an empty path are skipped
}

func (n *newSecret) run(ctx context.Context) error {
	if n.secret.Data == nil {
		n.secret.Data = map[string][]byte{}
	}
	for key, path := range n.files {
		if path == "" {
			continue
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		n.secret.Data[key] = content
	}
	if n.output != nil && n.output.Set() {
		return n.output.Print(n.IOStreams, &n.secret)
	}
	a, err := accountOf(n.factory, "")
	if err != nil {
		return err
	}
	if n.output != nil && n.output.DryRun {
		fmt.Fprintf(n.Out, "secret/%s created (dry run)\n", n.secret.Name)
		return nil
	}
	if _, err := a.client.CoreV1().Secrets(a.namespace).Create(ctx, &n.secret, metav1.CreateOptions{}); err != nil {
		return err
	}
	fmt.Fprintf(n.Out, "secret/%s created\n", n.secret.Name)
	return nil
}

// newSecretsNew returns the `oc secrets new` command.
func newSecretsNew(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	f := &secretOfFiles{newSecret: newSecret{factory: factory, IOStreams: streams}}
	command := &cobra.Command{
		Use: "new NAME [KEY=]FILE...", Short: "Create a secret from files", Args: cobra.MinimumNArgs(2),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(f.validate(args))
			f.complete(args, command.Flags().Changed("type"))
			util.CheckErr(f.run(command.Context()))
		},
	}
	command.Flags().StringVar(&f.kind, "type", string(corev1.SecretTypeOpaque), "Type of the secret. Default: the type that a key .dockercfg or .dockerconfigjson needs, or Opaque.")
	command.Flags().BoolVar(&f.confirm, "confirm", false, "Accept an unknown type.")
	f.output = objects.AddOutput(command)
	return command
}

// secretOfFiles holds the state of `oc secrets new`.
type secretOfFiles struct {
	newSecret
	kind    string
	confirm bool
}

func (f *secretOfFiles) validate(args []string) error {
	if !f.confirm && !slices.Contains(secretTypes(), corev1.SecretType(f.kind)) {
		return fmt.Errorf("unknown secret type %q; to use it, add --confirm", f.kind)
	}
	for _, arg := range args[1:] {
		if strings.Count(arg, "=") > 1 {
			return errors.New("Key names or file paths cannot contain '='.")
		}
	}
	return nil
}

// complete derives the keys from the arguments. Unless --type is set, it derives the type from the
// keys.
func (f *secretOfFiles) complete(args []string, typeSet bool) {
	f.files = map[string]string{}
	for _, arg := range args[1:] {
		key, path, ok := strings.Cut(arg, "=")
		if !ok {
			key, path = filepath.Base(arg), arg
		}
		f.files[key] = path
	}
	f.secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: args[0]}, Type: corev1.SecretType(f.kind)}
	if typeSet {
		return
	}
	if _, ok := f.files[corev1.DockerConfigJsonKey]; ok {
		f.secret.Type = corev1.SecretTypeDockerConfigJson
	}
	if _, ok := f.files[corev1.DockerConfigKey]; ok {
		f.secret.Type = corev1.SecretTypeDockercfg
	}
}

// secretTypes returns the secret types that Kubernetes defines.
func secretTypes() []corev1.SecretType {
	return []corev1.SecretType{
		corev1.SecretTypeOpaque, corev1.SecretTypeDockercfg, corev1.SecretTypeDockerConfigJson, corev1.SecretTypeBasicAuth,
		corev1.SecretTypeSSHAuth, corev1.SecretTypeTLS, corev1.SecretTypeServiceAccountToken, corev1.SecretTypeBootstrapToken,
	}
}

// newSecretsBasicAuth returns the `oc secrets new-basicauth` command.
func newSecretsBasicAuth(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	b := &basicAuth{newSecret: newSecret{factory: factory, IOStreams: streams}}
	command := &cobra.Command{
		Use: "new-basicauth NAME --username=NAME (--password=PASSWORD | --prompt)", Short: "Create a secret with a password for a Git repository", Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(b.complete(args[0]))
			util.CheckErr(b.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&b.user, "username", "", "Name of the user")
	flags.StringVar(&b.password, "password", "", "Password or token")
	flags.BoolVar(&b.prompt, "prompt", false, "Prompt for the password")
	flags.StringVar(&b.authority, "ca-cert", "", "File with the certificate authority of the server")
	flags.StringVar(&b.gitConfig, "gitconfig", "", "File with git settings")
	return command
}

// basicAuth holds the state of `oc secrets new-basicauth`.
type basicAuth struct {
	newSecret
	user, password, authority, gitConfig string
	prompt                               bool
}

// complete sets the secret's data. If --prompt is set, it prompts for the password. It returns an
// error if neither a user nor a password is given.
func (b *basicAuth) complete(name string) (err error) {
	if b.prompt && b.password != "" {
		return errors.New("must provide either --prompt or --password flag")
	}
	if b.prompt {
		if b.password, err = login.AskHidden(b.IOStreams, bufio.NewReader(b.In), "Password: "); err != nil {
			return err
		}
	}
	if b.user == "" && b.password == "" {
		return errors.New("set a user with --username or a password with --password or --prompt")
	}
	b.secret = corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Type: corev1.SecretTypeBasicAuth, Data: map[string][]byte{}}
	for key, value := range map[string]string{corev1.BasicAuthUsernameKey: b.user, corev1.BasicAuthPasswordKey: b.password} {
		if value != "" {
			b.secret.Data[key] = []byte(value)
		}
	}
	b.files = map[string]string{"ca.crt": b.authority, ".gitconfig": b.gitConfig}
	return nil
}

// newSecretsSSHAuth returns the `oc secrets new-sshauth` command.
func newSecretsSSHAuth(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	var key, authority, gitConfig string
	command := &cobra.Command{
		Use: "new-sshauth NAME --ssh-privatekey=FILE", Short: "Create a secret with an SSH key for a Git repository", Args: cobra.ExactArgs(1),
		Run: func(command *cobra.Command, args []string) {
			if key == "" {
				util.CheckErr(errors.New("set the file of the key with --ssh-privatekey"))
			}
			n := &newSecret{
				factory: factory, IOStreams: streams, secret: corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: args[0]}, Type: corev1.SecretTypeSSHAuth},
				files: map[string]string{corev1.SSHAuthPrivateKey: key, "ca.crt": authority, ".gitconfig": gitConfig},
			}
			util.CheckErr(n.run(command.Context()))
		},
	}
	flags := command.Flags()
	flags.StringVar(&key, "ssh-privatekey", "", "File with the private key")
	flags.StringVar(&authority, "ca-cert", "", "File with the certificate authority of the server")
	flags.StringVar(&gitConfig, "gitconfig", "", "File with git settings")
	return command
}
