// Package pki writes the credentials of a host before its first component starts: certificate
// authorities, certificates, kubeconfigs and the key pair of service accounts. Keys are ECDSA
// P-256, except the key of service accounts, which is 2048-bit RSA. All signatures use SHA-256.
// Ensure keeps existing keys of other kinds.
//
// File names and subjects are those of OpenShift 3's /etc/origin/master. Call Ensure at each start:
// it keeps valid credentials, renews others, and never replaces a certificate authority. Renewer
// does the same while the host runs.
//
// The kubeconfigs of the host's own components refer to certificate files. client-go reloads them
// when they change, so a renewal reaches a running client. Only admin.kubeconfig contains its
// certificate, so that administrators can copy it to other machines. Such a copy expires with the
// certificate in it.
//
// A renewed certificate keeps its key. Spec.ReplaceKeys replaces the keys, too. In both cases the
// files of a certificate and its key match at every moment, even after a kill or a power failure: a
// new pair is complete before one rename puts it in place (pair.go).
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

// Spec describes the credentials of a host.
type Spec struct {
	// Dir is the absolute path of the folder of all files except the administrator's kubeconfig.
	Dir string
	// AdminKubeconfig is the absolute path of the administrator's kubeconfig.
	AdminKubeconfig string
	// APIHosts are the names and IP addresses of the API server: host name, addresses of the
	// machine, and the address of the service `kubernetes`. Ensure adds the names of the loopback
	// device and of the services `kubernetes` and `openshift`.
	APIHosts []string
	// APIURL is the address of the API server in the administrator's kubeconfig, such as
	// `https://192.0.2.10:8443`. LoopbackURL is its address in the kubeconfigs of the control
	// plane, and NodeURL its address in the kubeconfigs of the node, by default the same.
	APIURL, LoopbackURL, NodeURL string
	// NodeName is the name of the Node object.
	NodeName string
	// NodeHosts are the names and IP addresses of this machine, for the servers of the kubelet and
	// etcd. Ensure adds NodeName for the kubelet and the loopback device for etcd.
	NodeHosts []string
	// RegistryHosts are further names of the image registry, in addition to its service and
	// NodeHosts.
	RegistryHosts []string
	// ClusterDomain is the cluster's DNS domain. The default is `cluster.local`.
	ClusterDomain string
	// LeafLifetime and CALifetime are the lifetimes of new certificates. The defaults are one and
	// ten years.
	LeafLifetime, CALifetime time.Duration
	// ReplaceKeys issues all leaves with new keys. Authorities and the key of service accounts are
	// kept.
	ReplaceKeys bool
	// Now returns the time. The default is time.Now.
	Now func() time.Time
}

// Credentials are the result of Ensure.
type Credentials struct {
	Files
	// Issued contains the certificates and kubeconfigs that this call wrote, such as
	// `master.server.crt`, sorted.
	Issued []string
	// CAExpiry is the expiry of the certificate authority that expires first.
	CAExpiry time.Time
}

// Ensure makes the files match spec. It creates missing files and keeps valid ones. It renews a
// certificate if its subject or names do not match spec, another authority signed it, its file is
// damaged, or less than a third of its lifetime is left.
//
// If a certificate authority is damaged or expired, or if it is missing although its certificates
// exist, Ensure fails with an error that names the file and the remedy: a new authority would lock
// out every client and node.
func Ensure(spec Spec) (*Credentials, error) {
	spec = spec.completed()
	if err := os.MkdirAll(filepath.Join(spec.Dir, "node"), 0o700); err != nil {
		return nil, fmt.Errorf("create directory of certificates: %w", err)
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
		i.settlePairs,                              // of a previous process that was killed
		i.checkAuthorities, i.checkServiceAccounts, // before any other write
		i.loadKeys, i.ensureAuthorities, i.ensureServiceAccounts, i.ensureLeaves, i.ensureKubeconfigs,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	slices.Sort(i.credentials.Issued)
	return i.credentials, nil
}

// issuer is the state of one call of Ensure.
type issuer struct {
	spec        Spec
	credentials *Credentials
	// keys contains the private keys by path. unwritten contains, in PEM, the keys that are not in
	// their files yet.
	keys      map[string]crypto.Signer
	unwritten map[string][]byte
	// authorities contains the certificate authorities by the path of their certificate.
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

// lock prevents concurrent calls of other processes. The kernel releases the lock when this process
// ends.
func lock(dir string) (unlock func(), err error) {
	unlock, err = filelock.Lock(filepath.Join(dir, ".lock"), filelock.Exclusive)
	if err != nil {
		return nil, fmt.Errorf("lock certificates: %w", err)
	}
	return unlock, nil
}
