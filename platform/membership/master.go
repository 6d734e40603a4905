package membership

import (
	"context"
	"crypto/ecdh"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/internal/atomicfile"
	"github.com/slipway-platform/slipway/pki/join"
	"github.com/slipway-platform/slipway/platform/record"
)

// maxSharedFile is the maximum size of a configuration file that masters share, in bytes.
const maxSharedFile = 256 << 10

// etcdTimeout is the timeout for connecting to the etcd member of another master.
const etcdTimeout = 5 * time.Second

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
	if err := h.checkContradictions(master.Files); err != nil {
		return err
	}
	if err := h.checkEtcd(ctx, master.Etcd, response.Masters); err != nil {
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

// checkEtcd returns an error if this host cannot connect to the etcd member of the master that
// admitted it. It does not check the other members, because they might be lost. If no member has
// the address of that master's API server, this host must be able to connect to any member. cluster
// lists the members as NAME=URL, and apis contains the host:port of the master's API server.
func (h *Host) checkEtcd(ctx context.Context, cluster string, apis []string) error {
	own := h.Config.Node.NodeName
	var members, others []etcdMember
	for member := range strings.SplitSeq(cluster, ",") {
		name, peer, _ := strings.Cut(member, "=")
		target, err := url.Parse(peer)
		if err != nil {
			return fmt.Errorf("read address of etcd member %s: %w", name, err)
		}
		switch {
		case name == own:
		case slices.ContainsFunc(apis, func(api string) bool {
			host, _, err := net.SplitHostPort(api)
			return err == nil && host == target.Hostname()
		}):
			members = append(members, etcdMember{name, target.Host})
		default:
			others = append(others, etcdMember{name, target.Host})
		}
	}
	if len(members) == 0 {
		members = others
	}
	var errs []error
	for _, member := range members {
		conn, err := (&net.Dialer{Timeout: etcdTimeout}).DialContext(ctx, "tcp", member.address)
		if err == nil {
			return conn.Close()
		}
		errs = append(errs, fmt.Errorf("the etcd member of master %s does not respond: %w", member.name, err))
	}
	return fmt.Errorf("%w; allow connections between masters to ports 2379 and 2380, and run the command again; if this host is not to become a master, run on another master: slipway etcd remove %s", errors.Join(errs...), own)
}

// etcdMember is a member of etcd. address is the host:port at which it serves its peers.
type etcdMember struct{ name, address string }

// checkContradictions returns an error if settings in this host's master-config.yaml differ from
// the cluster's settings.
func (h *Host) checkContradictions(files map[string][]byte) error {
	dir, err := os.MkdirTemp("", "slipway-")
	if err != nil {
		return fmt.Errorf("compare settings: %w", err)
	}
	defer os.RemoveAll(dir)
	name := filepath.Join("master", "master-config.yaml")
	if err := os.Mkdir(filepath.Join(dir, "master"), 0o700); err != nil {
		return fmt.Errorf("compare settings: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), files[name], 0o600); err != nil {
		return fmt.Errorf("compare settings: %w", err)
	}
	// Use the settings despite errors, because the directory does not contain the files that the
	// settings refer to.
	theirs, err := config.LoadAnyway(dir, "")
	if theirs == nil {
		return err
	}
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
