package pki

import (
	"cmp"
	"crypto"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// StorageGroup is the group of the user in Files.StorageKubeconfig.
const StorageGroup = "system:slipway-storages"

// leaf describes a certificate that an authority issues.
type leaf struct {
	files     Pair
	authority Pair
	user      string
	groups    []string
	hosts     []string
	usage     []x509.ExtKeyUsage
}

// leaves returns all of a host's leaf certificates.
func (i *issuer) leaves() []leaf {
	f, s := i.credentials.Files, i.spec
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	both := append(slices.Clone(server), client...)
	nodeUser := "system:node:" + s.NodeName
	leaves := []leaf{
		{files: f.APIServer, authority: f.CA, user: "system:openshift-apiserver", hosts: s.apiServerHosts(), usage: server},
		{files: f.Registry, authority: f.CA, user: "docker-registry", hosts: s.registryHosts(), usage: server},
		{files: f.KubeletServer, authority: f.CA, user: nodeUser, groups: []string{"system:nodes"}, hosts: append([]string{s.NodeName}, s.NodeHosts...), usage: server},
		{files: f.KubeletClient, authority: f.CA, user: "system:openshift-node-admin", groups: []string{"system:node-admins"}, usage: client},
		{files: f.FrontProxy, authority: f.FrontProxyCA, user: "front-proxy-client", usage: client},
		{files: f.EtcdServer, authority: f.EtcdCA, user: "etcd", hosts: append(loopback(), s.NodeHosts...), usage: both},
		{files: f.EtcdClient, authority: f.EtcdCA, user: "apiserver-etcd-client", usage: client},
		{files: i.client("admin"), authority: f.CA, user: "system:admin", groups: []string{"system:masters", "system:cluster-admins"}, usage: client},
		{files: clientOf(f.MasterKubeconfig), authority: f.CA, user: "system:openshift-master", groups: []string{"system:masters"}, usage: client},
		{files: clientOf(f.ControllerManagerKubeconfig), authority: f.CA, user: "system:kube-controller-manager", usage: client},
		{files: clientOf(f.SchedulerKubeconfig), authority: f.CA, user: "system:kube-scheduler", usage: client},
		{files: clientOf(f.NodeKubeconfig), authority: f.CA, user: nodeUser, groups: []string{"system:nodes"}, usage: client},
	}
	for _, c := range NodeClients() {
		leaves = append(leaves, leaf{files: clientOf(c.Kubeconfig(f)), authority: f.CA, user: c.User, groups: c.Groups, usage: client})
	}
	return leaves
}

func (i *issuer) client(name string) Pair {
	return clientOf(filepath.Join(i.spec.Dir, name+".kubeconfig"))
}

// clientOf returns the paths of the client certificate for a kubeconfig. The certificate is in the
// same directory and has the same name.
func clientOf(kubeconfig string) Pair {
	name := strings.TrimSuffix(kubeconfig, ".kubeconfig")
	return Pair{Cert: name + ".crt", Key: name + ".key"}
}

func (s Spec) apiServerHosts() []string {
	hosts := append(loopback(), s.APIHosts...)
	for _, service := range []string{"kubernetes", "openshift"} {
		hosts = append(hosts, service, service+".default", service+".default.svc", service+".default.svc."+s.ClusterDomain)
	}
	return hosts
}

// ServerHosts returns the names and addresses in the serving certificates of the API server and the
// registry. No other server is allowed to have these names, because clients accept every
// certificate that the same authority has signed.
func (s Spec) ServerHosts() []string {
	s = s.completed()
	return slices.Concat(s.apiServerHosts(), s.registryHosts())
}

func (s Spec) registryHosts() []string {
	return slices.Concat(loopback(), s.NodeHosts, s.RegistryHosts, registryname.ServiceHosts(s.ClusterDomain))
}

func loopback() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// ensureLeaves issues certificates that are missing or no longer valid.
func (i *issuer) ensureLeaves() error {
	for _, l := range i.leaves() {
		ca, key := i.authorities[l.authority.Cert], i.keys[l.files.Key]
		cert, err := readCertificate(l.files.Cert)
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDamaged) {
			return fmt.Errorf("read certificate: %w", err)
		}
		if err == nil && i.unwritten[l.files.Key] == nil && i.good(cert, l, ca, key) {
			continue
		}
		if err := i.sign(l, ca, key); err != nil {
			return err
		}
	}
	return nil
}

// good reports whether a certificate matches l and is not due for renewal.
func (i *issuer) good(cert *x509.Certificate, l leaf, ca *authority, key crypto.Signer) bool {
	dns, ips := split(l.hosts)
	now := i.spec.Now()
	renewal := cert.NotAfter.Add(-cert.NotAfter.Sub(cert.NotBefore) / renewalDivisor)
	// A certificate cannot outlive its authority. Renewing a certificate that expires with its
	// authority would have no effect.
	lasts := now.Before(renewal) || !cert.NotAfter.Before(ca.cert.NotAfter)
	return samePublicKey(cert.PublicKey, key.Public()) &&
		cert.CheckSignatureFrom(ca.cert) == nil &&
		cert.Subject.CommonName == l.user &&
		sameSet(cert.Subject.Organization, l.groups) &&
		sameSet(cert.DNSNames, dns) &&
		sameSet(texts(cert.IPAddresses), texts(ips)) &&
		sameSet(cert.ExtKeyUsage, l.usage) &&
		!now.Before(cert.NotBefore) && !now.After(cert.NotAfter) && lasts
}

func (i *issuer) sign(l leaf, ca *authority, key crypto.Signer) error {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
	if err != nil {
		return fmt.Errorf("choose serial number: %w", err)
	}
	now := i.spec.Now()
	dns, ips := split(l.hosts)
	template := &x509.Certificate{
		// The authority itself uses serial number 1, so all other serial numbers are higher.
		SerialNumber:          serial.Add(serial, big.NewInt(2)),
		Subject:               pkix.Name{CommonName: l.user, Organization: l.groups},
		NotBefore:             latest(now.Add(-Backdating), ca.cert.NotBefore),
		NotAfter:              earliest(now.Add(i.spec.LeafLifetime), ca.cert.NotAfter),
		KeyUsage:              x509.KeyUsageKeyEncipherment | x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           l.usage,
		BasicConstraintsValid: true,
		DNSNames:              dns,
		IPAddresses:           ips,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, ca.cert, key.Public(), ca.key)
	if err != nil {
		return fmt.Errorf("sign certificate %q: %w", l.files.Cert, err)
	}
	encoded := encodePEM("CERTIFICATE", der)
	if newKey := i.unwritten[l.files.Key]; newKey != nil {
		err = l.files.replace(encoded, newKey)
	} else {
		err = atomicfile.Write(l.files.Cert, encoded, public)
	}
	if err != nil {
		return err
	}
	i.record(l.files.Cert)
	return nil
}

// split splits hosts into names and IP addresses, and deduplicates them.
func split(hosts []string) (dns []string, ips []net.IP) {
	hosts = slices.Clone(hosts)
	slices.Sort(hosts)
	for _, host := range slices.Compact(hosts) {
		if ip := net.ParseIP(host); ip != nil {
			ips = append(ips, ip)
		} else if host != "" {
			dns = append(dns, strings.ToLower(host))
		}
	}
	slices.Sort(dns)
	return slices.Compact(dns), ips
}

func texts(ips []net.IP) []string {
	list := make([]string, len(ips))
	for i, ip := range ips {
		list[i] = ip.String()
	}
	return list
}

// sameSet reports whether two lists contain the same values, regardless of order and duplicates.
func sameSet[T cmp.Ordered](a, b []T) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func earliest(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
