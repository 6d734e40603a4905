package bigiptest

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
)

// secure is the HTTPS virtual server's listener. It returns decrypted connections. It forwards
// connections for passthrough hosts itself, as the virtual server's iRule specifies.
type secure struct {
	net.Listener
	appliance *Appliance
	fallback  tls.Certificate
	accepted  chan net.Conn
	done      chan struct{}
	once      sync.Once
}

func newSecure(a *Appliance, listener net.Listener, fallback tls.Certificate) *secure {
	s := &secure{Listener: listener, appliance: a, fallback: fallback, accepted: make(chan net.Conn), done: make(chan struct{})}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.handle(conn)
		}
	}()
	return s
}

// Accept returns the next connection to decrypt.
func (s *secure) Accept() (net.Conn, error) {
	select {
	case conn := <-s.accepted:
		return conn, nil
	case <-s.done:
		return nil, net.ErrClosed
	}
}

// Close closes the listener.
func (s *secure) Close() error {
	s.once.Do(func() { close(s.done) })
	return s.Listener.Close()
}

func (s *secure) handle(conn net.Conn) {
	name, replayed, err := serverNameOf(conn)
	if err != nil {
		_ = conn.Close()
		return
	}
	if member := s.appliance.passthrough(name); member != "" {
		s.appliance.splice(replayed, member)
		return
	}
	decrypted := tls.Server(replayed, &tls.Config{Certificates: []tls.Certificate{s.appliance.certificate(name, s.fallback)}})
	select {
	case s.accepted <- decrypted:
	case <-s.done:
		_ = conn.Close()
	}
}

// replay is a connection that first returns the data that was already read from it.
type replay struct {
	net.Conn
	reader io.Reader
}

// Read returns the data that was already read, and then the rest.
func (r *replay) Read(into []byte) (int, error) { return r.reader.Read(into) }

// readOnly is a connection that ignores writes.
type readOnly struct{ *replay }

// Write discards the alert that an aborted handshake sends.
func (readOnly) Write(b []byte) (int, error) { return len(b), nil }

// Close is a no-op. It does not close the connection.
func (readOnly) Close() error { return nil }

// serverNameOf returns the server name of a TLS connection, and a connection that can be read from
// the first byte.
func serverNameOf(conn net.Conn) (name string, from net.Conn, err error) {
	var first bytes.Buffer
	seen := false
	hello := func(info *tls.ClientHelloInfo) (*tls.Config, error) {
		name, seen = info.ServerName, true
		return nil, errors.New("only the name is needed")
	}
	peek := readOnly{&replay{conn, io.TeeReader(conn, &first)}}
	err = tls.Server(peek, &tls.Config{GetConfigForClient: hello}).Handshake()
	if seen {
		err = nil
	}
	return name, &replay{conn, io.MultiReader(&first, conn)}, err
}

// passthrough returns the pool member for a passthrough host, or "". The virtual server must have
// the router's iRule, whose text contains the name of the data group.
func (a *Appliance) passthrough(name string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, domain, _ := strings.Cut(name, ".")
	server := a.objects["ltm/virtual/"+escape(HTTPSServer)]
	for _, path := range server.texts("rules") {
		rule := a.objects["ltm/rule/"+escape(path)]
		for _, group := range a.list("ltm/data-group/internal") {
			if !slices.Contains(strings.FieldsFunc(rule.text("apiAnonymous"), func(r rune) bool { return strings.ContainsRune(" \n\t[]{}", r) }), group.fullPath) {
				continue
			}
			pools := map[string]string{}
			records, _ := group.attributes["records"].([]any)
			for _, record := range records {
				values, _ := record.(map[string]any)
				host, _ := values["name"].(string)
				pools[host], _ = values["data"].(string)
			}
			for _, host := range []string{name, "*." + domain} {
				if pool := pools[host]; pool != "" {
					return a.pick(pool)
				}
			}
		}
	}
	return ""
}

// splice connects a client to a pool member.
func (a *Appliance) splice(client net.Conn, member string) {
	defer client.Close()
	backend, err := a.dial(member)
	if err != nil {
		return
	}
	defer backend.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(backend, client)
		_ = backend.Close()
	}()
	_, _ = io.Copy(client, backend)
	_ = client.Close()
	<-done
}

// certificate returns the certificate from a host's client profile.
func (a *Appliance) certificate(name string, fallback tls.Certificate) tls.Certificate {
	a.mu.Lock()
	defer a.mu.Unlock()
	profile := a.attached("client-ssl", name)
	if profile == nil {
		return fallback
	}
	chain := a.content("ssl-cert", profile.text("cert")) + a.content("ssl-cert", profile.text("chain"))
	pair, err := tls.X509KeyPair([]byte(chain), []byte(a.content("ssl-key", profile.text("key"))))
	if err != nil {
		return fallback
	}
	return pair
}
