package kube

import (
	"fmt"
	"os"

	"sigs.k8s.io/yaml"
)

// ConvertEncryptionConfig reads a file with OpenShift 3's kind EncryptionConfig and returns it with
// the kind that upstream reads, which has the same fields.
func ConvertEncryptionConfig(path string) ([]byte, error) {
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
