package hosts

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"net"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/pki/join"
)

const (
	kubeletClient = certificatesv1.KubeAPIServerClientKubeletSignerName
	kubeletServer = certificatesv1.KubeletServingSignerName
	apiClient     = certificatesv1.KubeAPIServerClientSignerName
)

func TestApprovalOfSigningRequests(t *testing.T) {
	node := func(name string) pkix.Name {
		return pkix.Name{CommonName: "system:node:" + name, Organization: []string{"system:nodes"}}
	}
	proxy := pkix.Name{CommonName: "system:kube-proxy", OrganizationalUnit: []string{"system:node:second"}}
	admin := pkix.Name{CommonName: "system:admin", Organization: []string{"system:masters"}, OrganizationalUnit: []string{"system:node:second"}}
	dns := pkix.Name{CommonName: "system:slipway-dns", Organization: []string{"system:slipway-dns-servers"}, OrganizationalUnit: []string{"system:node:second"}}
	router := func(node string) pkix.Name {
		return pkix.Name{CommonName: "system:slipway-router", Organization: []string{"system:slipway-routers"}, OrganizationalUnit: []string{"system:node:" + node}}
	}
	dnsAsMaster := dns
	dnsAsMaster.Organization = append([]string{"system:masters"}, dns.Organization...)
	otherUnit := dns
	otherUnit.OrganizationalUnit = []string{"system:node:third"}
	addresses := func(texts ...string) (ips []net.IP) {
		for _, text := range texts {
			ips = append(ips, net.ParseIP(text))
		}
		return ips
	}
	tests := []struct {
		name     string
		user     string // "token" or a node's name
		signer   string
		template x509.CertificateRequest
		want     bool
	}{
		{"node with the name of the claim", "token", kubeletClient, x509.CertificateRequest{Subject: node("second")}, true},
		{"node with another name", "token", kubeletClient, x509.CertificateRequest{Subject: node("third")}, false},
		{"node that exists", "token", kubeletClient, x509.CertificateRequest{Subject: node("master")}, false},
		{"component with a token", "token", apiClient, x509.CertificateRequest{Subject: proxy}, false},
		{"server with a token", "token", kubeletServer, x509.CertificateRequest{Subject: node("second")}, false},
		{"server of a node", "second", kubeletServer, x509.CertificateRequest{Subject: node("second"), DNSNames: []string{"second"}, IPAddresses: addresses("192.0.2.2")}, true},
		{"server with the address of the master", "second", kubeletServer, x509.CertificateRequest{Subject: node("second"), IPAddresses: addresses("192.0.2.2", "192.0.2.1")}, false},
		{"server with another name", "second", kubeletServer, x509.CertificateRequest{Subject: node("second"), DNSNames: []string{"kubernetes"}}, false},
		{"service proxy of a node", "second", apiClient, x509.CertificateRequest{Subject: proxy}, true},
		{"DNS server of a node", "second", apiClient, x509.CertificateRequest{Subject: dns}, true},
		{"router of a node", "second", apiClient, x509.CertificateRequest{Subject: router("second")}, true},
		{"router of a host without one", "plain", apiClient, x509.CertificateRequest{Subject: router("plain")}, false},
		{"administrator", "second", apiClient, x509.CertificateRequest{Subject: admin}, false},
		{"component with a further group", "second", apiClient, x509.CertificateRequest{Subject: dnsAsMaster}, false},
		{"component of another node", "second", apiClient, x509.CertificateRequest{Subject: otherUnit}, false},
		{"component of a host that has not joined", "third", apiClient, x509.CertificateRequest{Subject: otherUnit}, false},
		{"component of a removed host", "removed", apiClient, x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:kube-proxy", OrganizationalUnit: []string{"system:node:removed"}}}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newFixture(t)
			token := f.createToken(t, time.Hour)
			if code, body := f.send(t, requestFor(token)); code != 200 {
				t.Fatal(body)
			}
			if err := f.register.change(t.Context(), "plain", func(h *Host) { h.NoRouter = true }); err != nil {
				t.Fatal(err)
			}
			removed := metav1.Now()
			if err := f.register.change(t.Context(), "removed", func(h *Host) { h.Removed = &removed }); err != nil {
				t.Fatal(err)
			}
			request := newRequest(t, tt.template)
			request.Spec.SignerName = tt.signer
			request.Spec.Username, request.Spec.Groups = "system:node:"+tt.user, []string{"system:nodes"}
			if tt.user == "token" {
				request.Spec.Username, request.Spec.Groups = join.UserPrefix+token.ID, []string{join.Group}
			}
			a := approver{client: f.client, tokens: f.tokens, register: f.register}
			reason, err := a.reason(t.Context(), request, parse(request.Spec.Request))
			if err != nil || (reason != "") != tt.want {
				t.Errorf("reason %q, %v; want approval: %t", reason, err, tt.want)
			}
		})
	}
}

// TestKubeletCertificateHasIPv6AddressesOfNode checks that a certificate contains IPv6 addresses
// only if pods have IPv6 addresses.
func TestKubeletCertificateHasIPv6AddressesOfNode(t *testing.T) {
	f := newFixture(t)
	own, foreign := net.ParseIP("2001:db8::2"), net.ParseIP("2001:db8::3")
	if code, body := f.send(t, requestFor(f.createToken(t, time.Hour))); code != 200 {
		t.Fatal(body)
	}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "second"}, Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: own.String()},
	}}}
	if _, err := f.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		dualStack bool
		address   net.IP
		want      bool
	}{{true, own, true}, {true, foreign, false}, {false, own, false}} {
		request := newRequest(t, x509.CertificateRequest{
			Subject: pkix.Name{CommonName: "system:node:second", Organization: []string{"system:nodes"}}, IPAddresses: []net.IP{tt.address},
		})
		request.Spec.SignerName = certificatesv1.KubeletServingSignerName
		request.Spec.Username, request.Spec.Groups = "system:node:second", []string{"system:nodes"}
		a := approver{client: f.client, tokens: f.tokens, register: f.register, dualStack: tt.dualStack}
		reason, err := a.reason(t.Context(), request, parse(request.Spec.Request))
		if err != nil || (reason != "") != tt.want {
			t.Errorf("%+v: reason %q, %v", tt, reason, err)
		}
	}
}

func newRequest(t *testing.T, template x509.CertificateRequest) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	der, err := x509.CreateCertificateRequest(rand.Reader, &template, newKey(t))
	if err != nil {
		t.Fatal(err)
	}
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			Usages:  []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}
}

func TestTokenGivesOneCertificate(t *testing.T) {
	f := newFixture(t)
	token := f.createToken(t, time.Hour)
	f.send(t, requestFor(token))
	for _, tt := range []struct {
		request string
		removed bool
		want    bool
	}{{"csr-1", false, true}, {"csr-1", false, true}, {"csr-2", false, false}, {"csr-1", true, false}} {
		approved, err := f.tokens.approve(t.Context(), token.ID, "second", tt.request, tt.removed)
		if err != nil || approved != tt.want {
			t.Errorf("%+v: %t, %v", tt, approved, err)
		}
	}
	if approved, err := f.tokens.approve(t.Context(), "absent", "second", "csr-1", false); err != nil || approved {
		t.Errorf("revoked token: %t, %v", approved, err)
	}
}

// certificate requests a certificate for the node "second" with a token, and reports whether the
// request is approved.
func (f fixture) certificate(t *testing.T, token join.Token, name string) bool {
	t.Helper()
	request := newRequest(t, x509.CertificateRequest{Subject: pkix.Name{CommonName: "system:node:second", Organization: []string{"system:nodes"}}})
	request.Name, request.Spec.SignerName = name, kubeletClient
	request.Spec.Username, request.Spec.Groups = join.UserPrefix+token.ID, []string{join.Group}
	a := approver{client: f.client, tokens: f.tokens, register: f.register}
	reason, err := a.reason(t.Context(), request, parse(request.Spec.Request))
	if err != nil {
		t.Fatal(err)
	}
	return reason != ""
}

func TestTwoTokensCannotGiveTwoHostsSameName(t *testing.T) {
	f := newFixture(t)
	first, second := f.createToken(t, time.Hour), f.createToken(t, time.Hour)
	// No certificate has been issued for either token yet.
	for _, token := range []join.Token{first, second} {
		if code, body := f.send(t, requestFor(token)); code != 200 {
			t.Fatal(body)
		}
	}
	if f.certificate(t, first, "csr-1") {
		t.Error("the host whose claim was replaced got a certificate")
	}
	if !f.certificate(t, second, "csr-2") {
		t.Error("the host with the last claim got no certificate")
	}
	third := f.createToken(t, time.Hour)
	if code, body := f.send(t, requestFor(third)); code != 403 || !strings.Contains(body, "another host is joining as second") {
		t.Errorf("a claim after the certificate: %d %s", code, body)
	}
	if f.certificate(t, third, "csr-3") {
		t.Error("the host with the third token got a certificate")
	}
}

func TestNodeTokenCannotClaimNameOfJoiningMaster(t *testing.T) {
	f := newFixture(t)
	request, _ := masterRequest(t, f.masterToken(t))
	if recorder := f.sendMaster(t, request, admitAll); recorder.Code != 200 {
		t.Fatal(recorder.Body)
	}
	token := f.createToken(t, time.Hour)
	if code, body := f.send(t, requestFor(token)); code != 403 || !strings.Contains(body, "another host is joining as second") {
		t.Errorf("got %d %s", code, body)
	}
	if f.certificate(t, token, "csr-1") {
		t.Error("the token was exchanged for a certificate of the master's node")
	}
	if hosts, err := f.register.read(t.Context()); err != nil || hosts["second"].Role != join.RoleMaster {
		t.Errorf("the register contains %+v, %v", hosts, err)
	}
}

func TestStaysOnHost(t *testing.T) {
	controlled := func(kind string) *corev1.Pod {
		yes := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: kind, Controller: &yes}}}}
	}
	for name, tt := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"replica set": {controlled("ReplicaSet"), false},
		"daemon set":  {controlled("DaemonSet"), true},
		"no owner":    {&corev1.Pod{}, false},
		"static":      {&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "x"}}}, true},
		"ended":       {&corev1.Pod{Status: corev1.PodStatus{Phase: corev1.PodSucceeded}}, true},
	} {
		if got := stays(tt.pod); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
