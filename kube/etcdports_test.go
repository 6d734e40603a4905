package kube

import (
	"crypto/tls"
	"net"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/internal/certtest"
	"github.com/slipway-platform/slipway/internal/componenttest"
)

// handshake connects over TLS and reports whether the server accepts the client certificate. In TLS
// 1.3, the client receives the rejection only after its own handshake.
func handshake(address string, certificates ...tls.Certificate) error {
	conn, err := tls.DialWithDialer(&net.Dialer{Timeout: 10 * time.Second}, "tcp", address, &tls.Config{
		InsecureSkipVerify: true, Certificates: certificates, NextProtos: []string{"h2"},
	})
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 9))
	return err
}

func TestEtcdPortsAcceptOnlyClusterCertificates(t *testing.T) {
	e := newMember(t)(false)
	componenttest.Run(t, e.Run)
	own, err := tls.LoadX509KeyPair(e.CertFile, e.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	pair := certtest.New(t).Issue(t, "etcd")
	foreign, err := tls.LoadX509KeyPair(pair.CertFile, pair.KeyFile)
	if err != nil {
		t.Fatal(err)
	}
	for name, address := range map[string]string{"clients": e.ClientAddress, "peers": e.PeerAddress} {
		if err := handshake(address, own); err != nil {
			t.Errorf("%s: the certificate of the cluster is rejected: %v", name, err)
		}
		if handshake(address) == nil {
			t.Errorf("%s: a client without a certificate is accepted", name)
		}
		if handshake(address, foreign) == nil {
			t.Errorf("%s: a certificate of another CA is accepted", name)
		}
	}
}
