package groupconfig

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

// record is the state of the node's configuration, as stored on disk.
type record struct {
	// Hash is the hash of the configuration in effect. Applied is the part of the file that comes
	// from this configuration.
	Hash    string          `json:"hash,omitempty"`
	Applied json.RawMessage `json:"applied,omitempty"`
	// Attempt is a configuration that has not become ready yet.
	Attempt *attempt `json:"attempt,omitempty"`
	// Refused is the hash of the last rejected configuration. Reason explains why it was rejected.
	// Reverted means that the configuration had been written to the file.
	Refused  string `json:"refused,omitempty"`
	Reason   string `json:"reason,omitempty"`
	Reverted bool   `json:"reverted,omitempty"`
}

// attempt is a configuration for which the process has been restarted.
type attempt struct {
	Hash    string          `json:"hash"`
	Applied json.RawMessage `json:"applied"`
	// File is the SHA-256 sum of the file that contains the configuration. Previous is the content
	// of the previous file.
	File     string `json:"file"`
	Previous []byte `json:"previous"`
	// Starts is the number of times that the process has been started with the configuration.
	Starts int `json:"starts"`
}

func readRecord(path string) (*record, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &record{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read node group record: %w", err)
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
		return fmt.Errorf("encode node group record: %w", err)
	}
	return atomicfile.Write(path, data, 0o600)
}

// sumOf returns a file's SHA-256 sum, or "" if the file cannot be read.
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
