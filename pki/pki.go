// Package pki writes the identity of a host before its first part starts: certificate authorities,
// certificates, kubeconfigs and the key pair of service accounts. Keys are ECDSA's on the curve P-256, but for the one of
// service accounts, which is 2048-bit RSA; all signatures are SHA-256. Keys of other kinds that are there already are kept.
//
// File names and subjects are those of OpenShift 3's /etc/origin/master where it has the file. Ensure
// may be called at each start: it keeps what is good, issues anew what is not, and never replaces a
// certificate authority. Renewer does the same while the host runs.
//
// Kubeconfigs of the host's own parts name certificate files, which client-go reads again when they
// change, so a renewal reaches a running client. Only admin.kubeconfig holds its certificate, so that
// the one file can be carried elsewhere; that copy ends with the certificate in it.
//
// A renewed certificate keeps its key. Spec.ReplaceKeys replaces the keys as well. In both cases the
// files of a certificate and its key match at every moment, also after a kill or a loss of power: a
// new pair is complete before one rename puts it in place (package pki, pair.go).
package pki

import (
	"crypto"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Default lifetimes.
const (
	year           = 365 * 24 * time.Hour
	defaultLeaf    = year
	defaultCA      = 10 * year
	renewalDivisor = 3 // a leaf is issued anew when less than a third of its life is left
)

// Spec says what a host's identity must state.
type Spec struct {
	// Dir is the folder of all files but the administrator's kubeconfig, absolute.
	Dir string
	// AdminKubeconfig is the administrator's kubeconfig, absolute.
	AdminKubeconfig string
	// APIHosts are the names and IP addresses that clients may reach the API server by: host name, addresses
	// of the machine, the address of the service `kubernetes`. The names of the loopback device and of
	// the services `kubernetes` and `openshift` are added.
	APIHosts []string
	// APIURL is the API server's address in the administrator's kubeconfig, such as
	// `https://192.0.2.10:8443`; LoopbackURL the one in those of the host's own parts.
	APIURL, LoopbackURL string
	// NodeName is the name of the Node object.
	NodeName string
	// NodeHosts are the names and IP addresses of this machine, for the servers of kubelet and etcd; NodeName
	// is added for the kubelet, the loopback device for etcd.
	NodeHosts []string
	// RegistryHosts are the names that clients may reach the image registry by beside those of its service and NodeHosts.
	RegistryHosts []string
	// ClusterDomain is the cluster's DNS domain; empty means `cluster.local`.
	ClusterDomain string
	// LeafLifetime and CALifetime are how long new certificates are valid; 0 means one and ten years.
	LeafLifetime, CALifetime time.Duration
	// ReplaceKeys issues all leaves with new keys. Authorities and the key of service accounts stay.
	ReplaceKeys bool
	// Now tells the time; nil means time.Now.
	Now func() time.Time
}

// Identity is what Ensure has made sure of.
type Identity struct {
	Files
	// Issued names the certificates and kubeconfigs written in this call, such as `master.server.crt`, sorted.
	Issued []string
	// CAExpiry is when the first of the certificate authorities ends.
	CAExpiry time.Time
}

// Ensure makes the files of spec true. It creates what is missing and keeps what is good. A
// certificate is issued anew when its subject or names are not those of spec, its authority has not signed it,
// its file is damaged, or less than a third of its life is left.
//
// A certificate authority that is damaged, expired, or missing beside certificates that it signed is an
// error that names the file and the remedy: a new authority would lock out every client and node.
func Ensure(spec Spec) (*Identity, error) {
	spec = spec.completed()
	if err := os.MkdirAll(filepath.Join(spec.Dir, "node"), 0o700); err != nil {
		return nil, fmt.Errorf("create folder of certificates: %w", err)
	}
	unlock, err := lock(spec.Dir)
	if err != nil {
		return nil, err
	}
	defer unlock()

	i := &issuer{spec: spec, identity: &Identity{Files: filesOf(spec)}, keys: map[string]crypto.Signer{}, unwritten: map[string][]byte{}}
	for _, step := range []func() error{
		i.settlePairs,                              // of a former process that was killed
		i.checkAuthorities, i.checkServiceAccounts, // before anything else is written
		i.loadKeys, i.ensureAuthorities, i.ensureServiceAccounts, i.ensureLeaves, i.ensureKubeconfigs,
	} {
		if err := step(); err != nil {
			return nil, err
		}
	}
	slices.Sort(i.identity.Issued)
	return i.identity, nil
}

// issuer holds what one call of Ensure has found and made.
type issuer struct {
	spec     Spec
	identity *Identity
	// keys are the private keys by path, and unwritten those among them that are not in their files
	// yet, in PEM.
	keys      map[string]crypto.Signer
	unwritten map[string][]byte
	// authorities are the certificate authorities by the path of their certificate.
	authorities map[string]*authority
}

func (i *issuer) issued(path string) {
	i.identity.Issued = append(i.identity.Issued, filepath.Base(path))
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
	if s.Now == nil {
		s.Now = time.Now
	}
	return s
}

// lock keeps other processes from issuing at the same time; the kernel releases it when this one ends.
func lock(dir string) (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock certificates: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock certificates %q: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}
