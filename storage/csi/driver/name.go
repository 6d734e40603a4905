package driver

import (
	"fmt"
	"regexp"
	"strings"
)

// maxName is the maximum length of a driver name, in bytes (CSI specification,
// GetPluginInfoResponse).
const maxName = 63

var namePattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// CheckName returns an error if a name is too long or contains characters that are unsafe in paths,
// labels or annotations (document "CSI Volume Plugins in Kubernetes", Kubelet to CSI Driver
// Communication; CSI specification, GetPluginInfoResponse).
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("use CSI driver: its response to GetPluginInfo has no name")
	case len(name) > maxName:
		return fmt.Errorf("use CSI driver %q: its name is longer than %d characters", name, maxName)
	case !namePattern.MatchString(name):
		return fmt.Errorf("use CSI driver %q: its name must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit", name)
	default:
		return nil
	}
}

// SanitizeName converts a driver name for use in an object name: it replaces all characters except
// letters, digits and '-' with '-', and converts letters to lowercase.
func SanitizeName(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name))
}
