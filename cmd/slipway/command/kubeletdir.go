package command

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// usualKubeletDir is the kubelet's directory in other distributions and inside pods.
const usualKubeletDir = "/var/lib/kubelet"

// kubeletDir returns the kubelet's directory from this host's configuration. If this directory does
// not exist, for example because the command runs in a pod, kubeletDir returns usualKubeletDir.
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
