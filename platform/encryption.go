package platform

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/controller/encryption"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/kube"
	"github.com/slipway-platform/slipway/pki"
)

// How the API server encrypts what holds secrets, made from the configuration.

// The arguments of the API server by which an administrator configures encryption: that of OpenShift 3 and its
// present name.
const (
	formerEncryptionArgument = "experimental-encryption-provider-config"
	encryptionArgument       = "encryption-provider-config"
)

// encrypt says how the API server encrypts. An administrator's own configuration takes the place of ours.
func (h *host) encrypt(server *kube.APIServer) error {
	if file := server.Arguments[formerEncryptionArgument]; len(file) == 1 && len(server.Arguments[encryptionArgument]) == 0 {
		current, err := h.currentEncryption(file[0])
		if err != nil {
			return fmt.Errorf("kubernetesMasterConfig.apiServerArguments.%s: %w", formerEncryptionArgument, err)
		}
		given := maps.Clone(server.Arguments)
		delete(given, formerEncryptionArgument)
		given[encryptionArgument] = []string{current}
		server.Arguments = given
	}
	own, err := h.encryption()
	server.EncryptionConfigFile = own
	return err
}

// encryption is the file with the cluster's own configuration of encryption; empty if it has none or an administrator gave
// another.
func (h *host) encryption() (string, error) {
	given := h.Master.KubernetesMasterConfig.APIServerArguments
	if len(given[encryptionArgument]) > 0 || len(given[formerEncryptionArgument]) > 0 {
		return "", nil
	}
	return pki.EnsureEncryption(h.path("pki"), *h.Master.Slipway.EncryptSecrets)
}

// currentEncryption gives a file of OpenShift 3's kind EncryptionConfig, which has the same fields, the kind that
// upstream reads.
func (h *host) currentEncryption(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var file map[string]any
	if yaml.Unmarshal(content, &file) != nil || file == nil {
		return "", fmt.Errorf("read %q: it is no YAML", path) // the cause would show a key
	}
	file["apiVersion"], file["kind"] = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
	if content, err = yaml.Marshal(file); err != nil {
		return "", err
	}
	current := filepath.Join(h.runDir(), "encryption.yaml")
	return current, atomicfile.Write(current, content, 0o600)
}

// rewriter is the part that encrypts what a cluster has stored before.
func (h *host) rewriter() (Component, error) {
	own, err := h.encryption()
	if err != nil {
		return nil, err
	}
	client, err := kubeconfig(h.identity.MasterKubeconfig)
	if err != nil {
		return nil, err
	}
	client.QPS, client.Burst = 50, 100
	rewriter := &encryption.Rewriter{Client: client}
	for _, name := range pki.EncryptedResources() {
		rewriter.Resources = append(rewriter.Resources, schema.ParseGroupResource(name).WithVersion("v1"))
	}
	if own != "" {
		rewriter.File = own
	}
	return rewriter, nil
}

// encryptionCommand manages the keys of the store.
func encryptionCommand(opts *options) *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key that encrypts from now on",
		Long: `Add a key that encrypts from now on. The API server reads it within a minute. The control plane then stores all objects with secrets again, in the
background. It is done when both of these are the same:

  slipway oc get configmap slipway-encryption -n kube-system -o jsonpath={.data.version}
  sha256sum <data>/pki/encryption.yaml

The old keys stay in the file. Keep them as long as there are backups from their time. To end a key that was stolen, remove it from the file afterwards.

With several API servers, copy the file to all of them before the first one reads it: add the key as the second one of the list, distribute the file, and
then make it the first.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.load()
			if err != nil {
				return err
			}
			if err := pki.RotateEncryption(h.path("pki")); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "There is a new key. The API server uses it within a minute.")
			return nil
		},
	}
	command := &cobra.Command{Use: "encryption", Short: "Manage the keys that secrets are stored with", GroupID: "host"}
	command.AddCommand(rotate)
	return command
}
