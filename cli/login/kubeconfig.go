package login

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// HostKubeconfig returns the administrator's kubeconfig of this host's cluster if the user has no
// kubeconfig: KUBECONFIG is unset, and homeFile (~/.kube/config) does not exist. It returns "" if
// the user cannot read it. Normally, only root can read it.
func HostKubeconfig(env func(string) string, homeFile string) string {
	if env(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return ""
	}
	if _, err := os.Stat(homeFile); err == nil {
		return ""
	}
	return hostFile(env)
}

// hostFile returns the administrator's kubeconfig of this host's cluster, or "" if the user cannot
// read it.
func hostFile(env func(string) string) string {
	dataDir := env("SLIPWAY_DATA_DIR")
	if dataDir == "" {
		dataDir = "/var/lib/slipway"
	}
	path := filepath.Join(dataDir, "admin.kubeconfig")
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	_ = file.Close()
	return path
}
