// Package keypair reads a server's certificate and key from files that are replaced while the
// server runs.
package keypair

import (
	"crypto/tls"
	"fmt"
	"sync"
)

// Loader returns a function for tls.Config.GetCertificate. The function reads the files on each
// handshake, so that a renewed certificate is used immediately. While the files do not match,
// because they are being replaced, it returns the pair from the previous handshake. It fails if no
// previous pair exists.
func Loader(certFile, keyFile string) func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	var mu sync.Mutex
	var last *tls.Certificate
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		mu.Lock()
		defer mu.Unlock()
		if err == nil {
			last = &pair
		}
		if last == nil {
			return nil, fmt.Errorf("read certificate: %w", err)
		}
		return last, nil
	}
}
