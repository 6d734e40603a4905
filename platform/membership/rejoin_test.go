package membership

import (
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/network/hostaddr"
	"github.com/slipway-platform/slipway/pki"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// newMember returns a host that has joined a cluster. The host has the given certificate, and
// trusts the given authority.
func newMember(t *testing.T, authority *certtest.Authority, pair certtest.Pair) *Host {
	t.Helper()
	h := newHost(t, "")
	h.Address = netip.MustParseAddr("192.0.2.2")
	h.Membership = &record.Membership{Masters: []string{"192.0.2.1:8443"}, Router: true}
	h.Credentials.Router = true
	if err := h.Membership.Write(h.MembershipFile); err != nil {
		t.Fatal(err)
	}
	ca := read(t, authority.File)
	if err := h.Credentials.WriteAuthorities([]byte(ca), []byte(ca)); err != nil {
		t.Fatal(err)
	}
	write(t, pki.Current(h.Credentials.KubeletDir(), pki.KubeletStore), read(t, pair.CertFile)+read(t, pair.KeyFile))
	return h
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestJoinedHostFindsMastersAtOtherAddress(t *testing.T) {
	authority := certtest.New(t)
	valid, expired := authority.Issue(t, "system:node:second"), authority.IssueExpired(t, "second")
	for _, tt := range []struct {
		name     string
		pair     certtest.Pair
		other    bool // true if the master belongs to another cluster
		settings string
		want     string // part of the error
	}{
		{"found", valid, false, masterConfig + "routingConfig: {subdomain: apps.example.com}\n", ""},
		{"expired certificate", expired, false, masterConfig, "run `slipway token create --node second` on a master"},
		{"another cluster", valid, true, masterConfig, "the master does not respond"},
		{"settings of a newer master", valid, false, masterConfig + "later: true\n", "use the same version of slipway on all hosts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			issuer := authority
			if tt.other {
				issuer = certtest.New(t)
			}
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				var request join.Request
				if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.NodeName == "" || request.Token != "" || len(r.TLS.PeerCertificates) != 1 {
					t.Errorf("got the request %+v, %v", request, err)
				}
				_ = json.NewEncoder(w).Encode(join.Response{Role: join.RoleNode, Settings: tt.settings, Masters: []string{"192.0.2.9:9443"}, Registry: "192.0.2.9:5000", ServiceCA: "services"})
			}))
			pair := issuer.Issue(t, "master")
			certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
			if err != nil {
				t.Fatal(err)
			}
			server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequestClientCert}
			server.StartTLS()
			defer server.Close()
			h := newMember(t, authority, tt.pair)
			expectError(t, tt.name, h.Rejoin(t.Context(), server.URL, nil), tt.want)
			membership, err := record.ReadMembership(h.MembershipFile)
			if err != nil {
				t.Fatal(err)
			}
			want := h.Membership
			if tt.want == "" {
				want = &record.Membership{Masters: []string{"192.0.2.9:9443"}, Registry: "192.0.2.9:5000", Router: true}
				files := h.Credentials.Files()
				if got := read(t, config.MasterFile(h.Config.DataDir)); got != tt.settings {
					t.Errorf("the settings are %q", got)
				}
				if !strings.Contains(read(t, files.NodeKubeconfig), "https://127.0.0.1:9443") || read(t, files.ServiceCA) != "services" {
					t.Error("the kubeconfig or the authority of services has not changed")
				}
			}
			if diff := cmp.Diff(want, membership); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

func TestFailedRenewalKeepsCredentials(t *testing.T) {
	authority := certtest.New(t)
	h := newMember(t, authority, authority.Issue(t, "system:node:second"))
	before := read(t, pki.Current(h.Credentials.KubeletDir(), pki.KubeletStore))
	token, _ := newToken(t)
	expectError(t, "no master", h.Rejoin(t.Context(), "https://127.0.0.1:1", &token), "the master does not respond")
	h.Address = hostaddr.OfflineAddress
	expectError(t, "offline", h.Rejoin(t.Context(), "https://127.0.0.1:1", &token), "no address that the master can reach")
	if after := read(t, pki.Current(h.Credentials.KubeletDir(), pki.KubeletStore)); after != before {
		t.Error("the host has another certificate")
	}
}
