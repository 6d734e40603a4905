package certtest

import (
	"crypto/tls"
	"net"
	"testing"
)

// RefuseWeak checks that a client rejects servers that offer only obsolete TLS versions or weak
// cipher suites, and that it accepts a secure server. The servers close every connection after the
// handshake.
func (a *Authority) RefuseWeak(t testing.TB, shakeHands func(address string) error) {
	t.Helper()
	pair := a.Issue(t, "weak")
	certificate, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	must(t, err)
	for name, config := range map[string]*tls.Config{
		"":        {MinVersion: tls.VersionTLS12},
		"TLS 1.0": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10},
		"TLS 1.1": {MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11},
		"RC4":     {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_RC4_128_SHA}},
	} {
		config.Certificates = []tls.Certificate{certificate}
		listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
		must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go serve(listener)
		if err := shakeHands(listener.Addr().String()); (err == nil) != (name == "") {
			t.Errorf("a server that only offers %q: %v", name, err)
		}
	}
}

// serve performs TLS handshakes until the listener is closed.
func serve(listener net.Listener) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			_ = conn.(*tls.Conn).Handshake() // the client reports the error
		}()
	}
}
