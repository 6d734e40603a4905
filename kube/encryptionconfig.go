package kube

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/internal/arguments"
	"github.com/slipway-platform/slipway/internal/atomicfile"
)

// API server arguments that specify an administrator's encryption configuration, under OpenShift
// 3's name and the current name.
const (
	formerEncryptionArgument = "experimental-encryption-provider-config"
	encryptionArgument       = "encryption-provider-config"
)

// ConfiguresEncryption reports whether API server arguments specify an encryption configuration.
func ConfiguresEncryption(args arguments.Map) bool {
	return len(args[encryptionArgument]) > 0 || len(args[formerEncryptionArgument]) > 0
}

// CurrentEncryptionArgument replaces OpenShift 3's argument for the encryption configuration with
// the current argument. It writes the converted configuration to a file in dir.
func CurrentEncryptionArgument(args arguments.Map, dir string) (arguments.Map, error) {
	file := args[formerEncryptionArgument]
	if len(file) != 1 || len(args[encryptionArgument]) > 0 {
		return args, nil
	}
	content, err := convertEncryptionConfig(file[0])
	if err != nil {
		return nil, fmt.Errorf("kubernetesMasterConfig.apiServerArguments.%s: %w", formerEncryptionArgument, err)
	}
	converted := filepath.Join(dir, "encryption.yaml")
	if err := atomicfile.Write(converted, content, 0o600); err != nil {
		return nil, err
	}
	args = maps.Clone(args)
	delete(args, formerEncryptionArgument)
	args[encryptionArgument] = []string{converted}
	return args, nil
}

// convertEncryptionConfig reads a file with OpenShift 3's EncryptionConfig kind and returns its
// content with the kind that upstream reads. Both kinds have the same fields.
func convertEncryptionConfig(path string) ([]byte, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if yaml.Unmarshal(content, &fields) != nil || fields == nil {
		return nil, fmt.Errorf("read %q: it is not valid YAML", path) // the cause can contain a key
	}
	fields["apiVersion"], fields["kind"] = "apiserver.config.k8s.io/v1", "EncryptionConfiguration"
	return yaml.Marshal(fields)
}
