package nodeconfig

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// record is the state of the node's configuration on disk.
type record struct {
	// Hash is the hash of the configuration that is in effect, and Applied its part in the file.
	Hash    string          `json:"hash,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
	// Attempt is a configuration that has not become ready yet.
	Attempt *attempt `json:"attempt,omitempty"`
	// Refused is the hash of the last rejected configuration, and Reason explains why. Reverted means
	// that it was in the file.
	Refused  string `json:"refused,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Reverted bool   `json:"reverted,omitempty"`
}

// attempt is a configuration for which the process restarted.
type attempt struct {
	Hash    string          `json:"hash"`
	Applied json.RawMessage `json:"applied"`
	// File is the SHA-256 sum of the file with the configuration, and Previous the file before it.
	File     string `json:"file"`
	Previous []byte `json:"previous"`
	// Starts counts the starts of the process with the configuration.
	Starts int `json:"starts"`
}

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &record{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read record of node group: %w", err)
	}
	r := &record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("read record of node group %q: %w; remove the file", path, err)
	}
	return r, nil
}

func (r *record) write(path string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode record of node group: %w", err)
	}
	return atomicfile.Write(path, data, 0o600)
}

// sumOf returns the SHA-256 sum of a file, or "" if it cannot be read.
func sumOf(path string) string {
	content, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return sum(content)
}

func sum(content []byte) string {
	digest := sha256.Sum256(content)
	return hex.EncodeToString(digest[:])
}
