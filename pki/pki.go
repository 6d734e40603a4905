// Package pki writes a host's credentials before its first component starts: certificate
// authorities, certificates, kubeconfigs and the service account key pair. Keys are ECDSA P-256,
// except the service account key, which is 2048-bit RSA. All signatures use SHA-256. Ensure keeps
// existing keys of other types.
//
// File names and subjects are the same as in OpenShift 3's /etc/origin/master. Ensure must be
// called on each start: it keeps valid credentials, renews expiring certificates, and never
// replaces a certificate authority, except the service signer. While the host is running, Renewer
// calls Ensure periodically.
//
// The kubeconfigs of the host's own components refer to certificate files. client-go reloads the
// files when they change, so a running client uses a renewed certificate. Only admin.kubeconfig
// embeds its certificate, so that administrators can copy it to other machines. The copy expires
// with its certificate.
//
// A renewed certificate keeps its key, unless Spec.ReplaceKeys is set. In both cases, a certificate
// file and its key file match at all times, even after a kill or a power failure. A new pair is
// complete before a single rename puts it in place (pair.go).
package pki

import (
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-platform/slipway/internal/filelock"
)

// Default lifetimes.
const (
	year           = 365 * 24 * time.Hour
	defaultLeaf    = year
	defaultCA      = 10 * year
	renewalDivisor = 3 // a leaf is renewed when less than a third of its lifetime is left
)

// Spec describes a host's credentials.
type Spec struct {
	// Dir is the absolute path of the directory for all files except the administrator's
	// kubeconfig.
	Dir string
	// AdminKubeconfig is the absolute path of the administrator's kubeconfig.
	AdminKubeconfig string
	// APIHosts contains the API server's names and IP addresses: the host name, the machine's
	// addresses, and the address of the `kubernetes` service. Ensure adds the loopback names and
	// the names of the `kubernetes` and `openshift` services.
	APIHosts []string
	// APIURL is the API server's address in the administrator's kubeconfig, such as
	// `https://192.0.2.10:8443`. LoopbackURL is its address in the control plane's kubeconfigs, and
	// NodeURL is its address in the node's kubeconfigs. NodeURL defaults to LoopbackURL.
	APIURL, LoopbackURL, NodeURL string
	// NodeName is the name of the Node object.
	NodeName string
	// NodeHosts contains this machine's names and IP addresses, for the kubelet's and etcd's
	// servers. Ensure adds NodeName for the kubelet and the loopback names for etcd.
	NodeHosts []string
	// RegistryHosts contains host names of the image registry, in addition to its service's names
	// and NodeHosts.
	RegistryHosts []string
	// ClusterDomain is the cluster's DNS domain. The default is `cluster.local`.
	ClusterDomain string
	// LeafLifetime and CALifetime are the lifetimes of new certificates. The defaults are one year
	// and ten years.
	LeafLifetime, CALifetime time.Duration
	// ReplaceKeys issues all leaf certificates with new keys. It keeps the authorities and the
	// service account key.
	ReplaceKeys bool
	// Now returns the current time. The default is time.Now.
	Now func() time.Time
}

// Credentials is the result of Ensure.
type Credentials struct {
	Files
	// Issued lists the names of the certificates and kubeconfigs that this call wrote, such as
	// `master.server.crt`. It is sorted.
	Issued []string
	// CAExpiry is the expiry time of the certificate authority that expires first.
	CAExpiry time.Time
}

// Ensure creates or renews files so that they match spec. It creates missing files and keeps valid
// files. It renews a certificate if its subject or names do not match spec, if a different
// authority signed it, if its file is damaged, or if less than a third of its lifetime is left.
//
// If a certificate authority is damaged or expired, or if it is missing although certificates
// signed by it exist, Ensure returns an error that contains the file's path and the remedy. It does
// not create a new authority, because a new authority would lock out every client and node.
func Ensure(spec Spec) (*Credentials, error) {
	spec = spec.completed()
	if err := os.MkdirAll(filepath.Join(spec.Dir, "node"), 0o700); err != nil {
		return nil, fmt.Errorf("create certificate directory: %w", err)
	}
	unlock, err := lock(spec.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()

	i := &issuer{
		spec:        spec,
		credentials: &Credentials{Files: filesOf(spec)},
		keys:        map[string]crypto.Signer{},
		unwritten:   map[string][]byte{},
	}
	for _, step := range []func() error{
		i.settlePairs,                              // completes replacements by a killed process
		i.checkAuthorities, i.checkServiceAccounts, // must precede all writes
		i.loadKeys, i.ensureAuthorities, i.ensureServiceAccounts, i.ensureLeaves, i.ensureKubeconfigs,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	slices.Sort(i.credentials.Issued)
	return i.credentials, nil
}

// issuer is the state of one Ensure call.
type issuer struct {
	spec        Spec
	credentials *Credentials
	// keys maps paths to private keys. unwritten maps paths to PEM-encoded keys that are not in
	// their files yet.
	keys      map[string]crypto.Signer
	unwritten map[string][]byte
	// authorities maps the path of a certificate to its certificate authority.
	authorities map[string]*authority
}

func (i *issuer) record(path string) {
	i.credentials.Issued = append(i.credentials.Issued, filepath.Base(path))
}

func (s Spec) completed() Spec {
	if s.LeafLifetime == 0 {
		s.LeafLifetime = defaultLeaf
	}
	if s.CALifetime == 0 {
		s.CALifetime = defaultCA
	}
	if s.ClusterDomain == "" {
		s.ClusterDomain = "cluster.local"
	}
	if s.NodeURL == "" {
		s.NodeURL = s.LoopbackURL
	}
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

// lock prevents concurrent calls by other processes. The kernel releases the lock when this process
// exits.
func lock(dir string) (unlock func(), err error) {
	unlock, err = filelock.Lock(filepath.Join(dir, ".lock"), filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("lock certificates: %w", err)
	}
	return unlock, nil
}
