package login

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// HostKubeconfig returns the administrator's kubeconfig of the cluster on this host, for someone
// who has no kubeconfig: neither KUBECONFIG nor ~/.kube/config. It is empty if there is none or
// where the user may not read it, which root may. homeFile is ~/.kube/config.
func HostKubeconfig(env func(string) string, homeFile string) string {
	if env(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return ""
	}
	if _, err := os.Stat(homeFile); err == nil {
		return ""
	}
	return hostFile(env)
}

// hostFile returns the administrator's kubeconfig of the cluster on this host, where there is one
// and the user may read it.
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
