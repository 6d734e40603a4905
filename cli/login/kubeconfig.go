package login

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// HostKubeconfig returns the path of the administrator's kubeconfig for the cluster on this host.
// It returns "" if the user has a kubeconfig, which means that KUBECONFIG is set or homeFile
// (~/.kube/config) exists. It also returns "" if the user cannot read the administrator's
// kubeconfig. Normally, only root can read it.
func HostKubeconfig(env func(string) string, homeFile string) string {
	if env(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return ""
	}
	if _, err := os.Stat(homeFile); err == nil {
		return ""
	}
	return hostFile(env)
}

// hostFile returns the path of the administrator's kubeconfig for this host's cluster, or "" if the
// user cannot read the file.
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
