package pki

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"
	"time"
)

// TestLeafCertificatesAreRenewedForFortyDays issues certificates that are valid for a month, and
// advances the clock by forty days. Every leaf certificate must be renewed before it expires, but
// not in the first two thirds of its lifetime. Connections must succeed at the start and at the end
// of each check interval.
func TestLeafCertificatesAreRenewedForFortyDays(t *testing.T) {
	const day = 24 * time.Hour
	const lifetime, interval, period = 30 * day, 12 * time.Hour, 40 * day
	spec := specIn(t.TempDir())
	start := time.Now()
	now := start
	spec.Now = func() time.Time { return now }
	spec.LeafLifetime = lifetime
	renewer := &Renewer{Spec: func() (Spec, error) { return spec, nil }}

	serials, renewals := map[Pair]string{}, map[Pair]int{}
	expiry := map[Pair]time.Time{}
	for ; now.Sub(start) <= period; now = now.Add(interval) {
		if err := renewer.renew(); err != nil {
			t.Fatal(err)
		}
		for _, l := range leavesOf(spec) {
			cert := read(t, l.files.Cert)
			if serial := cert.SerialNumber.String(); serials[l.files] != serial {
				if remaining := expiry[l.files].Sub(now); serials[l.files] != "" && (remaining <= interval || remaining > lifetime/renewalDivisor+day) {
					t.Errorf("%s is renewed %s before it expires", l.files.Cert, remaining)
				}
				serials[l.files], expiry[l.files] = serial, cert.NotAfter
				renewals[l.files]++
			}
			for _, at := range []time.Time{now, now.Add(interval)} {
				if _, err := cert.Verify(x509.VerifyOptions{Roots: pool(t, l.authority.Cert), CurrentTime: at, KeyUsages: l.usage}); err != nil {
					t.Fatalf("%s at %s: %v", l.files.Cert, at, err)
				}
			}
		}
		f := filesOf(spec)
		for server, client := range map[Pair]Pair{f.APIServer: clientOf(f.NodeKubeconfig), f.KubeletServer: f.KubeletClient, f.EtcdServer: f.EtcdClient, f.Registry: {}} {
			authority := f.CA
			if server == f.EtcdServer {
				authority = f.EtcdCA
			}
			handshake(t, server, client, pool(t, authority.Cert), now.Add(interval))
		}
	}
	for _, l := range leavesOf(spec) {
		if renewals[l.files] < 2 {
			t.Errorf("%s was issued %d times in %s, want at least 2", l.files.Cert, renewals[l.files], period)
		}
	}
}

func pool(t *testing.T, path string) *x509.CertPool {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(content)
	return authorities
}

// handshake connects a client to a server at the given time. The server verifies the client if the
// client has a certificate.
func handshake(t *testing.T, server, client Pair, authorities *x509.CertPool, at time.Time) {
	t.Helper()
	clock := func() time.Time { return at }
	load := func(files Pair) []tls.Certificate {
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		if err != nil {
			t.Fatal(err)
		}
		return []tls.Certificate{pair}
	}
	name := read(t, server.Cert).DNSNames[0]
	accepting := &tls.Config{Certificates: load(server), ClientCAs: authorities, Time: clock}
	connecting := &tls.Config{RootCAs: authorities, ServerName: name, Time: clock}
	if client != (Pair{}) {
		accepting.ClientAuth, connecting.Certificates = tls.RequireAndVerifyClientCert, load(client)
	}
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	failure := make(chan error, 1)
	go func() { failure <- tls.Server(far, accepting).Handshake() }()
	if err := tls.Client(near, connecting).Handshake(); err != nil {
		t.Fatalf("connect to %s at %s: %v", server.Cert, at, err)
	}
	if err := <-failure; err != nil {
		t.Fatalf("accept %s at %s: %v", client.Cert, at, err)
	}
}
