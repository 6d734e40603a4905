package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/node"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// certificatesTimeout is the maximum time for a cluster to issue a host's certificates.
const certificatesTimeout = 2 * time.Minute

// becomeNode configures this host as a node.
func (h *Host) becomeNode(ctx context.Context, url string, token join.Token, router bool, authority []byte, response *join.Response) (err error) {
	m := h.Credentials
	m.Router = router
	if m.URL, err = localURL(response.Masters); err != nil {
		return err
	}
	if err := h.requestCredentials(ctx, m, url, token, authority, response); err != nil {
		return errors.Join(err, os.RemoveAll(m.Dir))
	}
	if err := config.WriteSettings(h.Config.DataDir, response.Settings); err != nil {
		return err
	}
	return record.Membership{Masters: response.Masters, Registry: response.Registry, Router: router}.Write(h.MembershipFile)
}

// localURL returns the URL at which the host's balancer listens. The URL has the same port as the
// masters' URLs.
func localURL(masters []string) (string, error) {
	if len(masters) == 0 {
		return "", errors.New("the master's response lists no API server; use the same version of slipway on all hosts")
	}
	_, port, err := net.SplitHostPort(masters[0])
	if err != nil {
		return "", fmt.Errorf("read API server address: %w", err)
	}
	return "https://" + net.JoinHostPort("127.0.0.1", port), nil
}

// requestCredentials requests the host's credentials and writes them to files. Before it returns,
// it removes the files that contain the token.
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
		return fmt.Errorf("the master did not issue the certificates of this host within %s; see `slipway logs control-plane` on the master: %w", certificatesTimeout, err)
	}
	if err != nil {
		return err
	}
	return m.WriteKubeconfigs()
}
