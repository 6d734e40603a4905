package remote

import (
	"crypto/tls"
	"testing"

	"github.com/slipway-platform/slipway/internal/certtest"
)

func TestServersWithWeakTLSAreRejected(t *testing.T) {
	authority := certtest.New(t)
	config, err := Config(TLS{CAFile: authority.File})
	if err != nil {
		t.Fatal(err)
	}
	authority.RefuseWeak(t, func(address string) error {
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return err
		}
		return conn.Close()
	})
}
