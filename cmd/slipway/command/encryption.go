package command

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/slipway-platform/slipway/controller/encryption"
	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/platform/host"
)

// encryptionCommand returns the command that manages the encryption keys for secrets.
func encryptionCommand(opts *options) *cobra.Command {
	rotate := &cobra.Command{
		Use:   "rotate",
		Short: "Add a key and use it for encryption",
		Long: `Add a key and use it for encryption. The API server reads it within a minute. The control plane then rewrites all objects with secrets in the
background. All objects are rewritten when both commands print the same checksum:

  slipway oc get configmap slipway-encryption -n kube-system -o jsonpath={.data.version}
  sha256sum <data>/pki/encryption.yaml

The file still contains the old keys. Keep them while you have backups that need them. To revoke a stolen key, wait until all objects
are rewritten, and then remove it from the file on all masters.

With several masters, all of them must run. The command copies the key to them, waits until their API servers can decrypt with it, and then lets them encrypt
with it. This takes about a minute.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h, err := opts.loadMaster()
			if err != nil {
				return err
			}
			if h.SeveralMasters() {
				err = rotateOnAll(cmd.Context(), h)
			} else {
				err = pki.RotateEncryption(h.PKIDir())
			}
			if err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "Added a key. The API server uses it within a minute.")
			return nil
		},
	}
	command := &cobra.Command{Use: "encryption", Short: "Manage the keys that encrypt secrets", GroupID: "host"}
	command.AddCommand(rotate)
	return command
}

// loadTimeout is the maximum time to wait until all API servers have read a new key. Each API
// server reads the key file once a minute.
const loadTimeout = 4 * time.Minute

// rotateOnAll adds a key on all masters. When all API servers have read the key, rotateOnAll makes
// them encrypt with it.
func rotateOnAll(ctx context.Context, h *host.Host) error {
	config, client, err := connectAdmin(h)
	if err != nil {
		return err
	}
	servers, err := allServers(ctx, h, config)
	if err != nil {
		return err
	}
	files, key := h.SharedFiles(client), pki.NewEncryptionKey()
	if err := files.Change(ctx, host.EncryptionFile, func() error { return key.Add(h.PKIDir()) }); err != nil {
		return err
	}
	version, err := encryption.Version(pki.EncryptionFile(h.PKIDir()))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	for _, server := range servers {
		lastErr := error(nil)
		err := wait.PollUntilContextCancel(ctx, time.Second, true, func(ctx context.Context) (loaded bool, _ error) {
			loaded, lastErr = encryption.Loaded(ctx, server, version)
			return loaded, nil
		})
		if err != nil {
			return errors.Join(fmt.Errorf("the API server %s did not load the new key within %s, so no master encrypts with it yet; make sure that all masters run, and repeat the command", server.Host, loadTimeout), lastErr)
		}
	}
	return files.Change(ctx, host.EncryptionFile, func() error { return key.Use(h.PKIDir()) })
}

// allServers returns connections to all masters' API servers. It returns an error if a master is
// down, because that master would not receive the key.
func allServers(ctx context.Context, h *host.Host, config *rest.Config) ([]*rest.Config, error) {
	servers, err := masters.Connections(ctx, config)
	if err != nil {
		return nil, err
	}
	listing, cancel := context.WithTimeout(ctx, etcdTimeout)
	defer cancel()
	members, err := h.EtcdMembers().List(listing)
	if err != nil {
		return nil, err
	}
	if len(servers) != len(members) {
		return nil, fmt.Errorf("only %d of %d masters are serving requests; start the others, or remove them with `oc delete node`; see `slipway status --cluster`", len(servers), len(members))
	}
	return servers, nil
}
