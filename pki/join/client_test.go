package join

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// master is a server at join.Path. Its certificate is signed by its own authority.
type master struct {
	*httptest.Server
	authority []byte
	// shown is the CA certificate that the server returns to a host. An attacker can return another
	// cluster's certificate.
	shown []byte
	// requests counts the join requests.
	requests int
	// clock is the difference between the server's clock and this machine's clock.
	clock time.Duration
	// redirect is the URL that join requests are redirected to, or "".
	redirect string
}

func newMaster(t *testing.T) *master {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	m := &master{authority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	m.shown = m.authority
	m.Server = httptest.NewUnstartedServer(http.HandlerFunc(m.handle))
	m.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	m.StartTLS()
	t.Cleanup(m.Close)
	return m
}

func (m *master) handle(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", time.Now().Add(m.clock).UTC().Format(http.TimeFormat))
	switch {
	case r.Method == http.MethodGet:
		_, _ = w.Write(m.shown)
	case m.redirect != "":
		http.Redirect(w, r, m.redirect, http.StatusTemporaryRedirect)
	default:
		m.requests++
		_ = json.NewEncoder(w).Encode(Response{Registry: "registry"})
	}
}

// join joins a host to the token's cluster through a server.
func (m *master) join(t *testing.T, url string, token Token) error {
	t.Helper()
	c := Client{URL: url, Token: token}
	authority, err := c.Authority(t.Context())
	if err != nil {
		return err
	}
	if string(authority) != string(m.authority) {
		t.Errorf("got authority\n%s", authority)
	}
	_, err = c.Join(t.Context(), authority, Request{Token: token.String()})
	return err
}

func TestHostJoinsClusterOfToken(t *testing.T) {
	m := newMaster(t)
	token, err := New(m.authority)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.join(t, m.URL, token); err != nil || m.requests != 1 {
		t.Errorf("%d requests, %v", m.requests, err)
	}
}

// TestHostTrustsOnlyAuthorityOfToken intercepts a joining host's connection.
func TestHostTrustsOnlyAuthorityOfToken(t *testing.T) {
	m, attacker := newMaster(t), newMaster(t)
	token, err := New(m.authority)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(m.authority)
	renamed := pem.EncodeToMemory(&pem.Block{Type: "TRUSTED CERTIFICATE", Bytes: block.Bytes})
	for name, shown := range map[string][]byte{
		"authority of the attacker":         attacker.authority,
		"a second authority":                []byte(string(m.authority) + string(attacker.authority)),
		"authority after another PEM block": []byte(string(renamed) + string(attacker.authority)),
	} {
		t.Run(name, func(t *testing.T) {
			attacker.shown = shown
			if err := m.join(t, attacker.URL, token); err == nil || attacker.requests > 0 {
				t.Errorf("%d requests with the token, %v", attacker.requests, err)
			}
		})
	}
}

func TestTokenIsNotSentToRedirectTarget(t *testing.T) {
	m := newMaster(t)
	token, err := New(m.authority)
	if err != nil {
		t.Fatal(err)
	}
	requests := 0
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { requests++ }))
	t.Cleanup(target.Close)
	m.redirect = target.URL
	if err := m.join(t, m.URL, token); err == nil || requests > 0 {
		t.Errorf("%d requests, %v", requests, err)
	}
}

func TestHostWithWrongClockIsRejectedBeforeItSendsToken(t *testing.T) {
	m := newMaster(t)
	token, err := New(m.authority)
	if err != nil {
		t.Fatal(err)
	}
	for _, m.clock = range []time.Duration{10 * time.Minute, -10 * time.Minute} {
		if err := m.join(t, m.URL, token); err == nil || !strings.Contains(err.Error(), "the clock of this machine differs from the master's clock by ") || m.requests > 0 {
			t.Errorf("with a difference of %s: %d requests, %v", m.clock, m.requests, err)
		}
	}
	m.clock = time.Minute
	if err := m.join(t, m.URL, token); err != nil {
		t.Errorf("with a difference of %s: %v", m.clock, err)
	}
}
