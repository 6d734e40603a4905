package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// usualKubeletDir is kubelet's directory in other distributions.
const usualKubeletDir = "/var/lib/kubelet"

// kubeletDir returns the kubelet's directory of the platform on this host, or the usual directory
// if the host has no such platform, as in a pod.
func (o *options) kubeletDir() (string, error) {
	h, err := o.load()
	if err != nil {
		return "", fmt.Errorf("find the kubelet's directory: %w", err)
	}
	if _, err := os.Stat(h.Node.VolumeDirectory); errors.Is(err, fs.ErrNotExist) {
		return usualKubeletDir, nil
	}
	return h.Node.VolumeDirectory, nil
}
