package proxy

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"
)

// keyPair is a certificate and its key in files, which the kubelet replaces before they expire.
type keyPair struct {
	certificate, key string

	mu      sync.Mutex
	loaded  *tls.Certificate
	changed time.Time // of the certificate's file
}

// get returns the current pair. The argument has no effect. If the files are in the middle of a
// change, it returns the previous pair.
func (p *keyPair) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	info, err := os.Stat(p.certificate)
	if err == nil && p.loaded != nil && info.ModTime().Equal(p.changed) {
		return p.loaded, nil
	}
	pair, loadErr := tls.LoadX509KeyPair(p.certificate, p.key)
	switch {
	case err == nil && loadErr == nil:
		p.loaded, p.changed = &pair, info.ModTime()
	case p.loaded == nil:
		return nil, fmt.Errorf("read certificate %q and key %q: %w", p.certificate, p.key, loadErr)
	}
	return p.loaded, nil
}
