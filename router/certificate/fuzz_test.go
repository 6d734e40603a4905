package certificate

import (
	"bytes"
	"encoding/pem"
	"testing"

	routev1 "github.com/openshift/api/route/v1"
)

// FuzzCheck checks that only PEM data from a route's certificates reaches HAProxy.
func FuzzCheck(f *testing.F) {
	authority, err := Nobody()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(authority), "", string(authority), "")
	f.Add("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "-----BEGIN PRIVATE KEY-----\n\n-----END PRIVATE KEY-----", "x", "bind *:1")
	f.Add(string(authority)+"\nbackend evil\n", "\x00", string(authority)+string(authority), "")
	f.Fuzz(func(t *testing.T, certificate, key, authority, destination string) {
		config := &routev1.TLSConfig{Certificate: certificate, Key: key, CACertificate: authority, DestinationCACertificate: destination}
		if Check(config) != nil {
			return
		}
		bundle, _ := Bundle(config)
		trusted, _ := Authorities(authority)
		for _, text := range [][]byte{bundle, trusted} {
			var buf bytes.Buffer
			for rest := text; ; {
				var block *pem.Block
				if block, rest = pem.Decode(rest); block == nil {
					break
				}
				_ = pem.Encode(&buf, &pem.Block{Type: block.Type, Bytes: block.Bytes})
			}
			if !bytes.Equal(buf.Bytes(), text) {
				t.Errorf("%q is not PEM alone", text)
			}
		}
	})
}
