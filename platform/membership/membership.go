// Package membership adds a host to a master's cluster, either as a node or as one of several
// masters.
package membership

import (
	"context"
	"crypto/ecdh"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/internal/version"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// prepareTimeout is the maximum time until a single master is ready for other masters.
const prepareTimeout = 3 * time.Minute

var errOffline = errors.New("this machine has no address that the master can reach: connect it, or set nodeIP in node-config.yaml")

// Host is a host that joins a cluster.
type Host struct {
	Config *config.Config
	// Membership and Cluster are the host's records, or nil. MembershipFile and ClusterFile are the
	// paths of the records' files.
	Membership     *record.Membership
	Cluster        *record.Cluster
	MembershipFile string
	ClusterFile    string
	// Credentials describes a node's credentials. They do not include the router's credentials
	// until the host has joined.
	Credentials pki.Member
	// Address is the machine's address. PeerURL is the URL of the machine's etcd member.
	Address netip.Addr
	PeerURL string
}

// CheckNew returns an error if the host has a cluster or is a member of one. It accepts a host
// whose join was interrupted.
func (h *Host) CheckNew() error {
	if h.Membership != nil {
		return errors.New("this host has already joined a cluster; start it with `slipway up`, or remove it with `slipway leave`")
	}
	if h.Cluster != nil && !h.Cluster.Complete {
		return nil
	}
	if h.Cluster != nil {
		return errors.New("this host is already one of the masters of a cluster; start it with `slipway up`, or remove it with `slipway leave`")
	}
	for _, path := range []string{h.Config.Master.EtcdDirectory(), h.path("pki", "ca.key")} {
		if _, err := os.Stat(path); err == nil {
			return fmt.Errorf("this host has its own cluster in %q; to join another one, remove it with `slipway down --purge`", h.Config.DataDir)
		}
	}
	return nil
}

// Join adds this host, which must be new, to a master's cluster and returns the host's role. The
// token determines whether the host becomes a node or a master. url is the URL of the master's API
// server. If Join fails, either the host has not joined or the error explains how to continue.
func (h *Host) Join(ctx context.Context, url string, token join.Token, router bool) (role string, err error) {
	if h.Address == hostaddr.OfflineAddress {
		return "", errOffline
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
	node := h.Config.Node
	response, err := request(ctx, master, authority, join.Request{
		Token: token.String(), NodeName: node.NodeName, Address: h.Address.String(), DNSDomain: node.DNSDomain,
		NoRouter: !router, Version: version.Slipway(), PeerURL: h.PeerURL, Key: key.PublicKey().Bytes(),
	})
	if err != nil {
		return "", err
	}
	if response.Role == join.RoleMaster {
		err = h.becomeMaster(ctx, token, key, response)
	} else {
		err = h.becomeNode(ctx, url, token, router, authority, response)
	}
	if err != nil {
		return "", err
	}
	if err := os.Remove(h.sealKeyFile()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("remove join key: %w", err)
	}
	return response.Role, nil
}

// path returns a path below the data directory.
func (h *Host) path(names ...string) string {
	return filepath.Join(append([]string{h.Config.DataDir}, names...)...)
}

func (h *Host) sealKeyFile() string { return h.path("join.key") }

// sealKey returns the private key for the join. A master accepts a repeated request only if the
// request contains the same public key. Therefore, the private key is kept in a file until the host
// has joined.
func (h *Host) sealKey() (*ecdh.PrivateKey, error) {
	content, err := os.ReadFile(h.sealKeyFile())
	if err == nil {
		if key, err := ecdh.X25519().NewPrivateKey(content); err == nil {
			return key, nil
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read join key: %w", err)
	}
	key, err := join.NewSealKey()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(h.Config.DataDir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	return key, atomicfile.Write(h.sealKeyFile(), key.Bytes(), 0o600)
}

// request sends a join request for this host, and retries it while the master is not ready. A
// single master restarts before it accepts a second master.
func request(ctx context.Context, master join.Client, authority []byte, request join.Request) (*join.Response, error) {
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
		if errors.Is(joinErr, join.ErrRejected) {
			return nil, joinErr
		}
		err = joinErr
	}
	return nil, fmt.Errorf("the master did not become ready for the host within %s: %w", prepareTimeout, err)
}
