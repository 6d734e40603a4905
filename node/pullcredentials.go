package node

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"k8s.io/kubernetes/pkg/credentialprovider"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ensurePullCredentials creates a file without credentials in the kubelet's root directory, unless
// the administrator has created the file. The kubelet uses the file's credentials to pull images
// for all pods. Without the file, it would use the credentials in root's home directory, where `oc
// registry login` and other clients store an administrator's token.
func ensurePullCredentials(rootDirectory string) error {
	path := filepath.Join(rootDirectory, "config.json")
	_, err := credentialprovider.ReadSpecificDockerConfigJSONFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = atomicfile.Write(path, []byte("{\"auths\": {}}\n"), 0o600)
	}
	if err != nil {
		return fmt.Errorf("read credentials for all pods from %q: %w", path, err)
	}
	return nil
}
