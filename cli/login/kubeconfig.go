package login

import (
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// HostKubeconfig returns the administrator's kubeconfig of this host's cluster, for a user without
// a kubeconfig: neither KUBECONFIG nor ~/.kube/config exists. It returns "" if there is none or the
// user cannot read it. Root can. homeFile is ~/.kube/config.
func HostKubeconfig(env func(string) string, homeFile string) string {
	if env(clientcmd.RecommendedConfigPathEnvVar) != "" {
		return ""
	}
	if _, err := os.Stat(homeFile); err == nil {
		return ""
	}
	return hostFile(env)
}

// hostFile returns the administrator's kubeconfig of this host's cluster, if the user can read it.
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
