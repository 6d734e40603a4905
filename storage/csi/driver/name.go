package driver

import (
	"fmt"
	"regexp"
	"strings"
)

// maxName is the longest name of a driver (specification of CSI, GetPluginInfoResponse).
const maxName = 63

var pattern = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// CheckName refuses names that are too long or that hold characters unsafe in paths, labels and annotations (document "CSI Volume Plugins in
// Kubernetes", Kubelet to CSI Driver Communication; specification of CSI, GetPluginInfoResponse).
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("use CSI driver: its answer to GetPluginInfo has no name")
	case len(name) > maxName:
		return fmt.Errorf("use CSI driver %q: its name is longer than %d characters", name, maxName)
	case !pattern.MatchString(name):
		return fmt.Errorf("use CSI driver %q: its name must consist of letters, digits, '-', '_' and '.', and begin and end with a letter or digit", name)
	default:
		return nil
	}
}

// Sanitized is a name of a driver as a part of the name of an object: every character but letters, digits and '-' becomes '-', and letters become
// small ones.
func Sanitized(name string) string {
	return strings.ToLower(strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '-'
	}, name))
}
