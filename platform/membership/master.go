package membership

import (
	"context"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// maxSharedFile is the maximum size of a configuration file that masters share, in bytes.
const maxSharedFile = 256 << 10

// SharedFiles returns the contents of the files that a master sends to a new master, keyed by path
// relative to the data directory. It returns the existing files in paths and the configuration
// files in clusterFile's directory. Files outside the data directory are omitted, because the
// administrator provides them.
func SharedFiles(dataDir, clusterFile string, paths []string) (map[string][]byte, error) {
	dir := filepath.Dir(clusterFile)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	for _, entry := range entries {
		path := filepath.Join(dir, entry.Name())
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() <= maxSharedFile && path != clusterFile {
			paths = append(paths, path)
		}
	}
	files := map[string][]byte{}
	for _, path := range paths {
		relative, err := filepath.Rel(dataDir, path)
		if err != nil || !filepath.IsLocal(relative) {
			continue
		}
		content, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read file that masters share: %w", err)
		}
		files[relative] = content
	}
	return files, nil
}

// becomeMaster configures this host as a master.
func (h *Host) becomeMaster(ctx context.Context, token join.Token, key *ecdh.PrivateKey, response *join.Response) error {
	message, err := token.Open(key, response.Master)
	if err != nil {
		return err
	}
	var master join.Master
	if err := json.Unmarshal(message, &master); err != nil {
		return fmt.Errorf("read master response: %w; use the same version of slipway on all hosts", err)
	}
	theirs, err := clusterConfig(master.Files)
	if err != nil {
		return err
	}
	if err := h.checkContradictions(theirs); err != nil {
		return err
	}
	if err := h.checkEtcd(ctx, master.Etcd, response.Masters, theirs.Master.EtcdAddress()); err != nil {
		return err
	}
	cluster := record.Cluster{Etcd: master.Etcd, Registry: response.Registry}
	if err := cluster.Write(h.ClusterFile); err != nil {
		return err
	}
	for name, content := range master.Files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("read master response: %q is not a file of the data directory", name)
		}
		path := h.path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("create master directory: %w", err)
		}
		if err := atomicfile.Write(path, content, 0o600); err != nil {
			return err
		}
	}
	cluster.Complete = true
	return cluster.Write(h.ClusterFile)
}

// checkContradictions returns an error if settings in this host's master-config.yaml differ from
// the cluster's settings.
func (h *Host) checkContradictions(theirs *config.Config) error {
	settings, err := theirs.SharedSettings()
	if err != nil {
		return err
	}
	keys, err := h.Config.Contradictions(settings)
	if err != nil || len(keys) == 0 {
		return err
	}
	return fmt.Errorf("master-config.yaml of this host differs from the cluster's: %s; remove these keys, or set them to the cluster's values", strings.Join(keys, ", "))
}

// clusterConfig returns the configuration in the cluster's files. The keys of files are paths
// relative to the data directory.
func clusterConfig(files map[string][]byte) (*config.Config, error) {
	dir, err := os.MkdirTemp("", "slipway-")
	if err != nil {
		return nil, fmt.Errorf("read cluster settings: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join("master", "master-config.yaml")
	if err := os.Mkdir(filepath.Join(dir, "master"), 0o700); err != nil {
		return nil, fmt.Errorf("read cluster settings: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
		return nil, fmt.Errorf("read cluster settings: %w", err)
	}
	// Use the settings despite errors, because the directory does not contain the files that the
	// settings refer to.
	theirs, err := config.LoadAnyway(dir, "")
	if theirs == nil {
		return nil, err
	}
	return theirs, nil
}
