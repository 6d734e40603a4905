package apiserver

import (
	"fmt"
	"io"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// DecodeConfig decodes an admission plugin's configuration, which is YAML or JSON, into config. It
// does not change config if reader is nil or empty, or if the configuration's kind is
// DefaultAdmissionConfig. It returns an error if the configuration contains unknown fields or its
// kind is not kind.
func DecodeConfig(reader io.Reader, kind string, config any) error {
	if reader == nil {
		return nil
	}
	content, err := io.ReadAll(reader)
	if err != nil || len(content) == 0 {
		return err
	}
	var header metav1.TypeMeta
	if err := yaml.Unmarshal(content, &header); err != nil {
		return err
	}
	if !slices.Contains([]string{kind, "DefaultAdmissionConfig", ""}, header.Kind) {
		return fmt.Errorf("kind is %q, must be %s", header.Kind, kind)
	}
	if header.Kind == "DefaultAdmissionConfig" {
		return nil // the configuration only enables or disables the plugin
	}
	return yaml.UnmarshalStrict(content, config)
}
