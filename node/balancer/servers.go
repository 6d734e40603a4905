package balancer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// ServerFile is the path of a file that stores the latest list of API servers on a master's node.
// The file contains a JSON list of host:port addresses. The node needs the list if it starts while
// its own API server is not serving.
type ServerFile string

// Save replaces the stored API servers.
func (f ServerFile) Save(servers []string) error {
	data, err := json.Marshal(servers)
	if err != nil {
		return fmt.Errorf("encode API servers: %w", err)
	}
	return atomicfile.Write(string(f), data, 0o600)
}

// Read returns the stored API servers. It returns no servers if the file does not exist.
func (f ServerFile) Read() (servers []string, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &servers)
	}
	if err != nil {
		return nil, fmt.Errorf("read API servers %q: %w; remove the file", string(f), err)
	}
	return servers, nil
}
