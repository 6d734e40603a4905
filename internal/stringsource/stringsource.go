// Package stringsource reads secrets from OpenShift 3's configuration files (StringSource).
package stringsource

import (
	"fmt"
	"os"
	"strings"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
)

// Read returns a secret that is stored in the configuration file itself, in an environment variable
// or in a separate file. Errors do not contain the secret.
func Read(source legacyv1.StringSource) (string, error) {
	switch {
	case source.KeyFile != "":
		return "", fmt.Errorf("read secret: keyFile is not supported; store the unencrypted secret in a file that only its owner can read, and set file to its path")
	case source.Env != "":
		value, ok := os.LookupEnv(source.Env)
		if !ok {
			return "", fmt.Errorf("read secret: environment variable %q is not set", source.Env)
		}
		return value, nil
	case source.File != "":
		content, err := os.ReadFile(source.File)
		if err != nil {
			return "", fmt.Errorf("read secret: %w", err)
		}
		return strings.TrimRight(string(content), "\r\n"), nil
	}
	return source.Value, nil
}
