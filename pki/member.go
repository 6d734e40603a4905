package pki

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// Member describes the credentials of a host that joined a cluster. The host does not have the
// private key of any authority. The cluster issues the host's certificates, and client-go's
// certificate stores keep each certificate and its key in a single file.
type Member struct {
	// Dir is the absolute path of the directory that contains all files.
	Dir string
	// URL is the API server's address in the kubeconfigs.
	URL string
	// NodeName is the name of the Node object.
	NodeName string
	// Router means that the host runs a router and has the router's credentials.
	Router bool
}

// Clients returns the host's API server clients, except the kubelet.
func (m Member) Clients() []NodeClient {
	return slices.DeleteFunc(NodeClients(), func(c NodeClient) bool { return c.User == RouterUser && !m.Router })
}

// KubeletStore is the name of the kubelet's client certificate store.
const KubeletStore = "kubelet-client"

// Files returns the paths of the credentials.
func (m Member) Files() Files { return filesOf(Spec{Dir: m.Dir}) }

// KubeletDir returns the directory for the kubelet's certificates.
func (m Member) KubeletDir() string { return filepath.Join(m.Dir, "kubelet") }

// StoreDir returns the directory for the certificates of the node's other clients.
func (m Member) StoreDir() string { return filepath.Join(m.Dir, "node") }

// Current returns the path of the file that contains a certificate store's current certificate and
// key.
func Current(dir, store string) string { return filepath.Join(dir, store+"-current.pem") }

// Subject returns the certificate subject of a node's client. The organizational unit is the name
// of the node, so that the certificate becomes invalid when the node is removed.
func (m Member) Subject(c NodeClient) pkix.Name {
	return pkix.Name{
		CommonName: c.User, Organization: c.Groups, OrganizationalUnit: []string{"system:node:" + m.NodeName},
	}
}

// WriteAuthorities writes the PEM-encoded CA certificates that the host trusts.
func (m Member) WriteAuthorities(cluster, services []byte) error {
	for _, dir := range []string{m.StoreDir(), m.KubeletDir()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("create certificate directory: %w", err)
		}
	}
	f := m.Files()
	if err := atomicfile.Write(f.NodeCA, cluster, public); err != nil {
		return err
	}
	return atomicfile.Write(f.ServiceCA, services, public)
}

// WriteKubeconfigs writes the node's kubeconfigs, which refer to the certificate stores.
func (m Member) WriteKubeconfigs() error {
	f := m.Files()
	if err := m.write(f.NodeKubeconfig, "system:node:"+m.NodeName, Current(m.KubeletDir(), KubeletStore)); err != nil {
		return err
	}
	for _, c := range m.Clients() {
		if err := m.write(c.Kubeconfig(f), c.User, Current(m.StoreDir(), c.Name)); err != nil {
			return err
		}
	}
	return nil
}

func (m Member) write(path, user, store string) error {
	config, err := kubeconfig(m.URL, user,
		&clientcmdapi.Cluster{CertificateAuthority: m.Files().NodeCA},
		&clientcmdapi.AuthInfo{ClientCertificate: store, ClientKey: store})
	if err != nil {
		return err
	}
	content, err := clientcmd.Write(*config)
	if err != nil {
		return fmt.Errorf("encode kubeconfig %q: %w", path, err)
	}
	return atomicfile.Write(path, content, secret)
}

// Check returns an error if credentials are missing.
func (m Member) Check() error {
	f := m.Files()
	paths := []string{f.NodeCA, f.ServiceCA, f.NodeKubeconfig, Current(m.KubeletDir(), KubeletStore)}
	for _, c := range m.Clients() {
		paths = append(paths, c.Kubeconfig(f), Current(m.StoreDir(), c.Name))
	}
	for _, path := range paths {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("find host credentials: %q is missing; restore it from a backup, or run `slipway leave` and join again", path)
		} else if err != nil {
			return fmt.Errorf("find host credentials: %w", err)
		}
	}
	return nil
}

// Certificate returns the kubelet's client certificate. If the certificate has expired, it returns
// an error that describes the remedy.
func (m Member) Certificate(now time.Time) (*tls.Certificate, error) {
	path := Current(m.KubeletDir(), KubeletStore)
	pair, err := tls.LoadX509KeyPair(path, path)
	if err != nil {
		return nil, fmt.Errorf("read certificate of node %q: %w", m.NodeName, err)
	}
	if now.After(pair.Leaf.NotAfter) {
		return nil, fmt.Errorf("the certificates of this host expired on %s: run `slipway token create --node %s` on a master, and then `slipway up --join https://MASTER:8443 --token-file -` on this host",
			pair.Leaf.NotAfter.Format(time.DateOnly), m.NodeName)
	}
	return &pair, nil
}
