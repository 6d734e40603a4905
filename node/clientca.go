package node

import (
	"crypto/x509"
	"fmt"
	"os"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ClientCAFile returns the file that contains the CAs whose client certificates the kubelet
// accepts. own is the cluster's CA file, and further is the file in servingInfo.clientCA. If
// further is not empty, ClientCAFile writes the content of both files to bundle and returns bundle.
func ClientCAFile(own, further, bundle string) (string, error) {
	if further == "" {
		return own, nil
	}
	var authorities []byte
	for _, path := range []string{own, further} {
		content, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("read kubelet client CA: %w", err)
		}
		if !x509.NewCertPool().AppendCertsFromPEM(content) {
			return "", fmt.Errorf("read kubelet client CA %q: it contains no certificate; correct servingInfo.clientCA in node-config.yaml", path)
		}
		authorities = append(append(authorities, content...), '\n')
	}
	return bundle, atomicfile.Write(bundle, authorities, 0o600)
}
