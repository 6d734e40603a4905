package ldap

import (
	"crypto/tls"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestBindRejectsWeakTLS(t *testing.T) {
	authority := certtest.New(t)
	authority.RefuseWeak(t, func(address string) error {
		server := Server{Scheme: "ldaps", Address: address, TLS: &tls.Config{RootCAs: authority.Pool()}}
		conn, err := server.Connect(t.Context())
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
