package platform

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// certificatesTimeout limits the time until a cluster has issued the certificates of a host.
const certificatesTimeout = 2 * time.Minute

// prepareTimeout is how long a single master may take to become ready for others.
const prepareTimeout = 3 * time.Minute

// Join adds this host, which must not have a cluster, to the cluster of a master, and returns its
// role. The token determines whether it becomes a node or a master. url is the address of the
// master's API server. After a failure, the host has joined nothing, or the error explains how to
// continue. The next Load reads the result.
func (h *Host) Join(ctx context.Context, url string, token join.Token, router bool) (role string, err error) {
	if err := h.checkUnjoined(); err != nil {
		return "", err
	}
	if err := h.findAddress(); err != nil {
		return "", err
	}
	if h.address == hostaddr.OfflineAddress {
		return "", errors.New("this machine has no address that the master can reach: connect it, or set nodeIP in node-config.yaml")
	}
	master := join.Client{URL: url, Token: token}
	authority, err := master.Authority(ctx)
	if err != nil {
		return "", err
	}
	key, err := h.sealKey()
	if err != nil {
		return "", err
	}
	response, err := h.requestJoin(ctx, master, authority, join.Request{
		Token: token.String(), NodeName: h.Node.NodeName, Address: h.address.String(), DNSDomain: h.Node.DNSDomain,
		NoRouter: !router, Version: version.Slipway(), PeerURL: h.peerURL(), Key: key.PublicKey().Bytes(),
	})
	if err != nil {
		return "", err
	}
	if response.Role == join.RoleMaster {
		err = h.joinMasters(token, key, response)
	} else {
		err = h.joinNodes(ctx, url, token, router, authority, response)
	}
	if err != nil {
		return "", err
	}
	if err := os.Remove(h.sealKeyFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("remove key of the join: %w", err)
	}
	return response.Role, nil
}

func (h *Host) sealKeyFile() string { return h.path("join.key") }

// sealKey returns the private key of the join. A master accepts a repetition with the same key
// only, so the file keeps it until the host has joined.
func (h *Host) sealKey() (*ecdh.PrivateKey, error) {
	content, err := os.ReadFile(h.sealKeyFile())
	if err == nil {
		if key, err := ecdh.X25519().NewPrivateKey(content); err == nil {
			return key, nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read key of the join: %w", err)
	}
	key, err := join.NewSealKey()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(h.sealKeyFile()), 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	return key, atomicfile.Write(h.sealKeyFile(), key.Bytes(), 0o600)
}

// requestJoin requests that this host joins. A single master starts again before it accepts a
// second one.
func (h *Host) requestJoin(ctx context.Context, master join.Client, authority []byte, request join.Request) (*join.Response, error) {
	response, err := master.Join(ctx, authority, request)
	if !errors.Is(err, join.ErrRetry) {
		return response, err
	}
	ctx, cancel := context.WithTimeout(ctx, prepareTimeout)
	defer cancel()
	for ctx.Err() == nil {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
		}
		response, joinErr := master.Join(ctx, authority, request)
		if joinErr == nil {
			return response, nil
		}
		if errors.Is(joinErr, join.ErrRefused) {
			return nil, joinErr
		}
		err = joinErr
	}
	return nil, fmt.Errorf("the master is not ready for the host after %s: %w", prepareTimeout, err)
}

// joinNodes makes this host a node.
func (h *Host) joinNodes(ctx context.Context, url string, token join.Token, router bool, authority []byte, response *join.Response) (err error) {
	m := h.member()
	m.Router = router
	if m.URL, err = localURL(response.Masters); err != nil {
		return err
	}
	if err := h.requestCredentials(ctx, m, url, token, authority, response); err != nil {
		return errors.Join(err, os.RemoveAll(m.Dir))
	}
	if err := config.WriteSettings(h.DataDir, response.Settings); err != nil {
		return err
	}
	return record.Membership{Masters: response.Masters, Registry: response.Registry, Router: router}.Write(h.membershipFile())
}

// checkUnjoined reports a host that has a cluster or is a member of one.
func (h *Host) checkUnjoined() error {
	if h.Joined() {
		return errors.New("this host has joined a cluster already; start it with `slipway up`, or remove it with `slipway leave`")
	}
	if h.cluster != nil && !h.cluster.Complete {
		return nil // an earlier attempt was interrupted
	}
	if h.cluster != nil {
		return errors.New("this host is one of the masters of a cluster already; start it with `slipway up`, or remove it with `slipway leave`")
	}
	for _, path := range []string{h.Master.EtcdDirectory(), h.path("pki", "ca.key")} {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("this host has a cluster of its own in %q; to join another one, remove it with `slipway down --purge`", h.DataDir)
		}
	}
	return nil
}

// localURL returns the address at which the balancer of the host listens: it has the port of the
// masters.
func localURL(masters []string) (string, error) {
	if len(masters) == 0 {
		return "", errors.New("the master named no API server; use the same version of slipway on all hosts")
	}
	_, port, err := net.SplitHostPort(masters[0])
	if err != nil {
		return "", fmt.Errorf("read address of API server: %w", err)
	}
	return "https://" + net.JoinHostPort("127.0.0.1", port), nil
}

// requestCredentials writes the credentials of the host. It removes the files with the token.
func (h *Host) requestCredentials(ctx context.Context, m pki.Member, url string, token join.Token, authority []byte, response *join.Response) error {
	if err := m.WriteAuthorities(authority, []byte(response.ServiceCA)); err != nil {
		return err
	}
	bootstrap, direct := h.path("pki", "bootstrap.kubeconfig"), h.path("pki", "joining.kubeconfig")
	defer os.Remove(bootstrap)
	defer os.Remove(direct)
	content, err := clientcmd.Write(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"cluster": {Server: url, CertificateAuthority: m.Files().NodeCA}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"token": {Token: token.String()}},
		Contexts:       map[string]*clientcmdapi.Context{"join": {Cluster: "cluster", AuthInfo: "token"}},
		CurrentContext: "join",
	})
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", bootstrap, err)
	}
	if err := atomicfile.Write(bootstrap, content, 0o600); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, certificatesTimeout)
	defer cancel()
	err = node.RequestCredentials(ctx, m, bootstrap, direct)
	if ctx.Err() != nil {
		return fmt.Errorf("the master did not issue the certificates of this host in %s; see `slipway logs control-plane` on the master: %w", certificatesTimeout, err)
	}
	if err != nil {
		return err
	}
	return m.WriteKubeconfigs()
}
