package pki

import (
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/internal/componenttest"
	"github.com/slipway-platform/slipway/internal/eventually"
)

func TestLeafCertificatesAreReissued(t *testing.T) {
	all := []string{
		"admin.crt", "aggregator-front-proxy.crt", "etcd.server.crt", "kube-controller-manager.crt", "kube-proxy.crt", "kube-scheduler.crt", "master.etcd-client.crt",
		"master.kubelet-client.crt", "master.server.crt", "node.crt", "openshift-master.crt", "registry.crt", "server.crt",
		"slipway-dns.crt", "slipway-idling.crt", "slipway-node.crt", "slipway-router.crt", "slipway-storage.crt",
	}
	tests := []struct {
		name   string
		change func(t *testing.T, s *Spec)
		want   []string
	}{
		{"address of the machine", func(t *testing.T, s *Spec) {
			s.APIHosts, s.NodeHosts = []string{"host.example.com", "192.0.2.11", "172.30.0.1"}, []string{"192.0.2.11"}
		}, []string{"etcd.server.crt", "master.server.crt", "registry.crt", "server.crt"}},
		{"removed address", func(t *testing.T, s *Spec) { s.NodeHosts = []string{"192.0.2.10"} }, []string{"etcd.server.crt", "registry.crt", "server.crt"}},
		{"order of addresses", func(t *testing.T, s *Spec) { slices.Reverse(s.APIHosts); slices.Reverse(s.NodeHosts) }, nil},
		{"spelling of addresses", func(t *testing.T, s *Spec) {
			s.NodeHosts = []string{"2001:DB8:0::1", "192.0.2.10"}
			s.APIHosts = append(s.APIHosts, "HOST.example.com")
		}, nil},
		{"node name", func(t *testing.T, s *Spec) { s.NodeName = "other" }, []string{"node.crt", "node.kubeconfig", "server.crt"}},
		{"port of the API server", func(t *testing.T, s *Spec) { s.APIURL = "https://192.0.2.10:443" }, []string{"admin.kubeconfig"}},
		{"domain", func(t *testing.T, s *Spec) { s.ClusterDomain = "other.local" }, []string{"master.server.crt", "registry.crt"}},
		{"missing certificate", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).APIServer.Cert) }, []string{"master.server.crt"}},
		{"damaged certificate", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).APIServer.Cert) }, []string{"master.server.crt"}},
		{"empty certificate", func(t *testing.T, s *Spec) { overwrite(t, filesOf(*s).APIServer.Cert, "") }, []string{"master.server.crt"}},
		{"missing key", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).KubeletServer.Key) }, []string{"server.crt"}},
		{"damaged key", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).KubeletServer.Key) }, []string{"server.crt"}},
		{"key of another certificate", func(t *testing.T, s *Spec) {
			copyFile(t, filesOf(*s).EtcdServer.Key, filesOf(*s).KubeletServer.Key)
		}, []string{"server.crt"}},
		{"certificate of another authority", func(t *testing.T, s *Spec) {
			copyFile(t, filesOf(*s).EtcdServer.Cert, filesOf(*s).KubeletServer.Cert)
			copyFile(t, filesOf(*s).EtcdServer.Key, filesOf(*s).KubeletServer.Key)
		}, []string{"server.crt"}},
		{"authority that the administrator replaced", func(t *testing.T, s *Spec) {
			copyFile(t, filesOf(*s).EtcdCA.Cert, filesOf(*s).FrontProxyCA.Cert)
			copyFile(t, filesOf(*s).EtcdCA.Key, filesOf(*s).FrontProxyCA.Key)
		}, []string{"aggregator-front-proxy.crt"}},
		{"missing kubeconfig", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).SchedulerKubeconfig) }, []string{"kube-scheduler.kubeconfig"}},
		{"damaged kubeconfig", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).SchedulerKubeconfig) }, []string{"kube-scheduler.kubeconfig"}},
		{"damaged administrator's kubeconfig", func(t *testing.T, s *Spec) { overwrite(t, s.AdminKubeconfig, "\x00") }, []string{"admin.kubeconfig"}},
		{"damaged public key", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).ServiceAccountPublicKey) }, []string{"serviceaccounts.public.key"}},
		{"more than a third of life left", after(240 * 24 * time.Hour), nil},
		{"less than a third of life left", after(245 * 24 * time.Hour), append([]string{"admin.kubeconfig"}, all...)},
		{"expired", after(3 * year), append([]string{"admin.kubeconfig"}, all...)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := newSpec(t)
			test.change(t, &spec)
			issued := ensure(t, spec).Issued
			slices.Sort(test.want)
			if diff := cmp.Diff(test.want, issued); diff != "" {
				t.Errorf("Issued (-want +got):\n%s", diff)
			}
			for _, l := range leavesOf(spec) {
				if spec.Now == nil {
					verify(t, l)
				}
			}
			if second := ensure(t, spec).Issued; len(second) > 0 {
				t.Errorf("Issued of the next start: %v, want none", second)
			}
		})
	}
}

func TestRenewalKeepsTheKey(t *testing.T) {
	spec := newSpec(t)
	before := contents(t, spec.Dir)
	after(300*24*time.Hour)(t, &spec)
	ensure(t, spec)
	for name, content := range contents(t, spec.Dir) {
		isKey := strings.HasSuffix(name, ".key")
		isAuthority := strings.HasSuffix(name, "ca.crt")
		if (isKey || isAuthority) && content != before[name] {
			t.Errorf("%s has changed", name)
		}
	}
}

func TestLeafExpiresWithAuthority(t *testing.T) {
	spec := newSpec(t)
	after(10*year-24*time.Hour)(t, &spec)
	ensure(t, spec)
	ca, err := readCertificate(filesOf(spec).CA.Cert)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := readCertificate(filesOf(spec).APIServer.Cert)
	if err != nil {
		t.Fatal(err)
	}
	if !cert.NotAfter.Equal(ca.NotAfter) {
		t.Errorf("leaf ends %v, authority %v", cert.NotAfter, ca.NotAfter)
	}
	if issued := ensure(t, spec).Issued; len(issued) > 0 {
		t.Errorf("Issued again: %v, want none, because a leaf cannot last longer", issued)
	}
}

func TestAuthoritiesAreNeverReplaced(t *testing.T) {
	tests := []struct {
		name   string
		change func(t *testing.T, s *Spec)
		file   func(f Files) string
		want   string
	}{
		{"missing key", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).CA.Key) }, func(f Files) string { return f.CA.Key }, "no such file"},
		{"damaged key", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).EtcdCA.Key) }, func(f Files) string { return f.EtcdCA.Key }, "damaged"},
		{"missing certificate", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).CA.Cert) }, func(f Files) string { return f.CA.Cert }, "no such file"},
		{"both missing", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).CA.Cert); remove(t, filesOf(*s).CA.Key) }, func(f Files) string { return f.CA.Cert }, "no such file"},
		{"damaged certificate", func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).FrontProxyCA.Cert) }, func(f Files) string { return f.FrontProxyCA.Cert }, "damaged"},
		{"key of another authority", func(t *testing.T, s *Spec) { copyFile(t, filesOf(*s).EtcdCA.Key, filesOf(*s).CA.Key) }, func(f Files) string { return f.CA.Cert }, "belongs to another certificate"},
		{"leaf instead of the authority", func(t *testing.T, s *Spec) {
			copyFile(t, filesOf(*s).APIServer.Cert, filesOf(*s).CA.Cert)
			copyFile(t, filesOf(*s).APIServer.Key, filesOf(*s).CA.Key)
		}, func(f Files) string { return f.CA.Cert }, "not a CA certificate"},
		{"expired", after(11 * year), func(f Files) string { return f.CA.Cert }, "it expired on"},
		{"clock before NotBefore", after(-year), func(f Files) string { return f.CA.Cert }, "set the machine's clock"},
		{"missing signing key of service accounts", func(t *testing.T, s *Spec) { remove(t, filesOf(*s).ServiceAccountKey) }, func(f Files) string { return f.ServiceAccountKey }, "no such file"},
		{"damaged signing key of service accounts", func(t *testing.T, s *Spec) { overwrite(t, filesOf(*s).ServiceAccountKey, "") }, func(f Files) string { return f.ServiceAccountKey }, "damaged"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := newSpec(t)
			test.change(t, &spec)
			before := contents(t, filepath.Dir(spec.Dir))
			_, err := Ensure(spec)
			if err == nil || !strings.Contains(err.Error(), test.file(filesOf(spec))) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Ensure: %v, want an error with %q that names %s", err, test.want, test.file(filesOf(spec)))
			}
			if err != nil && !strings.Contains(err.Error(), "; ") {
				t.Errorf("Ensure: %v, want a remedy", err)
			}
			if diff := cmp.Diff(before, contents(t, filepath.Dir(spec.Dir))); diff != "" {
				t.Errorf("files have changed:\n%s", diff)
			}
		})
	}
}

func TestPreviousServiceSignerStaysTrusted(t *testing.T) {
	for name, spoil := range map[string]func(*testing.T, *Spec){
		"expires soon": after(7 * year),
		"damaged":      func(t *testing.T, s *Spec) { truncate(t, filesOf(*s).ServiceSigner.Cert) },
		"without key":  func(t *testing.T, s *Spec) { remove(t, filesOf(*s).ServiceSigner.Key) },
	} {
		t.Run(name, func(t *testing.T) {
			spec := newSpec(t)
			previous := read(t, filesOf(spec).ServiceSigner.Cert)
			spoil(t, &spec)
			credentials := ensure(t, spec)
			signer := read(t, credentials.ServiceSigner.Cert)
			if signer.Equal(previous) {
				t.Fatal("it was not replaced")
			}
			var trusted []string
			rest, err := os.ReadFile(credentials.ServiceCA)
			if err != nil {
				t.Fatal(err)
			}
			for block, rest := pem.Decode(rest); block != nil; block, rest = pem.Decode(rest) {
				trusted = append(trusted, string(block.Bytes))
			}
			if want := []string{string(signer.Raw), string(previous.Raw)}; !slices.Equal(trusted, want) {
				t.Errorf("%d certificates are trusted, want the signer and the previous one", len(trusted))
			}
		})
	}
}

func TestRenewerIssuesBeforeExpiry(t *testing.T) {
	spec := newSpec(t)
	var days atomic.Int64
	spec.Now = func() time.Time { return time.Now().Add(time.Duration(days.Load()) * 24 * time.Hour) }
	renewer := &Renewer{Spec: func() (Spec, error) { return spec, nil }, Interval: time.Millisecond}
	issued := make(chan []string, 10)
	renewer.OnRenew(func(names []string) { issued <- names })

	component := componenttest.Run(t, renewer.Run)
	select {
	case names := <-issued:
		t.Errorf("issued %v at the start, want nothing", names)
	default:
	}
	days.Store(300)
	// A running check might already have issued some of the certificates.
	eventually.True(t, "master.server.crt is issued", func() bool {
		select {
		case names := <-issued:
			return slices.Contains(names, "master.server.crt")
		default:
			return false
		}
	})
	component.Stop()
}

func TestRenewerReportsErrorAtStart(t *testing.T) {
	spec := newSpec(t)
	remove(t, filesOf(spec).CA.Key)
	renewer := &Renewer{Spec: func() (Spec, error) { return spec, nil }}
	err := renewer.Run(t.Context(), func() { t.Error("ready was called") })
	if err == nil || !strings.HasPrefix(err.Error(), "renew certificates: ") {
		t.Errorf("Run: %v", err)
	}
}

func read(t *testing.T, path string) *x509.Certificate {
	t.Helper()
	cert, err := readCertificate(path)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func after(d time.Duration) func(t *testing.T, s *Spec) {
	return func(t *testing.T, s *Spec) { s.Now = func() time.Time { return time.Now().Add(d) } }
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

// truncate removes the second half of a file.
func truncate(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, to, string(data))
}
