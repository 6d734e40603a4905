package containerd

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// writtenBySlipway is the first line of the files that Write creates and can replace.
const writtenBySlipway = "# Written by slipway at each start: changes are lost.\n"

// RegistryHosts configures containerd so that a node can pull images under any of the cluster
// registry's host names without resolving the host name.
type RegistryHosts struct {
	// Dir is the directory that contains the registries' settings (containerd's config_path).
	Dir string
	// Names contains the registry's names in image references.
	Names []string
	// Address is the registry's host:port.
	Address string
	// CAFile contains the CA that signs the registry's serving certificate.
	CAFile string
}

// Write writes <Dir>/<name>/hosts.toml for each name. It keeps files that an administrator wrote.
func (r RegistryHosts) Write() error {
	names := slices.Compact(slices.Sorted(slices.Values(r.Names)))
	for _, name := range names {
		dir := filepath.Join(r.Dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("create directory of registry %q: %w", name, err)
		}
		settings := fmt.Sprintf(writtenBySlipway+"server = %q\n\n[host.%q]\ncapabilities = [\"pull\", \"resolve\"]\nca = %q\n",
			"https://"+name, "https://"+r.Address, r.CAFile)
		path := filepath.Join(dir, "hosts.toml")
		existing, err := os.ReadFile(path)
		if err == nil && (string(existing) == settings || !strings.HasPrefix(string(existing), writtenBySlipway)) {
			continue // avoid rewriting, because several of a host's processes call Write
		}
		if err := atomicfile.Write(path, []byte(settings), 0o644); err != nil {
			return fmt.Errorf("write settings of registry %q: %w", name, err)
		}
	}
	return nil
}
