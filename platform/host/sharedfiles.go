package host

import (
	"path/filepath"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/slipway-platform/slipway/controller/masters"
	"github.com/slipway-platform/slipway/pki"
)

// EncryptionFile is the key in SharedFiles for the file with the encryption keys for secrets.
const EncryptionFile = "pki.encryption.yaml"

// SharedFiles returns the files that commands change on all masters: passwords, and the keys that
// encrypt secrets. It does not return files outside the data directory, because the administrator
// manages them.
func (h *Host) SharedFiles(client kubernetes.Interface) *masters.SharedFiles {
	files := map[string]masters.SharedFile{EncryptionFile: {
		Path:  pki.EncryptionFile(h.PKIDir()),
		Write: func(content []byte) error { return pki.ReplaceEncryption(h.PKIDir(), content) },
	}}
	for _, file := range h.HTPasswdFiles() {
		if relative, err := filepath.Rel(h.DataDir, file); err == nil && filepath.IsLocal(relative) {
			files[strings.ReplaceAll(relative, "/", ".")] = masters.SharedFile{Path: file}
		}
	}
	return &masters.SharedFiles{
		Client: client, Files: files, Record: h.Path("master", "shared-files.json"),
		Seal: func(content []byte) ([]byte, error) { return pki.Seal(h.PKIDir(), content) },
		Open: func(sealed []byte) ([]byte, error) { return pki.Open(h.PKIDir(), sealed) },
	}
}
