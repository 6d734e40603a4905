package platform

import (
	"cmp"
	"path"
	"path/filepath"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/platform/upgrade"
)

// path returns a path below the data directory.
func (h *Host) path(names ...string) string {
	return filepath.Join(append([]string{h.DataDir}, names...)...)
}

// MasterFile returns the path of the control plane configuration.
func (h *Host) MasterFile() string { return cmp.Or(h.file, config.MasterFile(h.DataDir)) }

// NodeFile returns the path of the node configuration.
func (h *Host) NodeFile() string { return cmp.Or(h.file, config.NodeFile(h.DataDir)) }

// RunDir returns the directory for files that are valid only until the next boot.
func (h *Host) RunDir() string { return h.Node.Slipway.RunDirectory }

// Socket returns the path of the supervisor's socket.
func (h *Host) Socket() string { return filepath.Join(h.RunDir(), "slipway.sock") }

func (h *Host) etcdSocket() string { return filepath.Join(h.RunDir(), "etcd.sock") }

// ContainerdState returns the directory for containerd's state, which is valid only until the next
// boot.
func (h *Host) ContainerdState() string { return filepath.Join(h.RunDir(), "containerd") }

// ContainerdSocket returns the path of containerd's socket.
func (h *Host) ContainerdSocket() string { return filepath.Join(h.RunDir(), "containerd.sock") }

// imageSocket returns the path of the socket of the service that pulls pod images.
func (h *Host) imageSocket() string { return filepath.Join(h.RunDir(), "images.sock") }

// ProfileSocket returns the path of the socket on which a process serves its profiles.
func (h *Host) ProfileSocket(process string) string {
	return filepath.Join(h.RunDir(), process+"-profiles.sock")
}

// LogFile returns the path of a process's log.
func (h *Host) LogFile(process string) string { return h.path("log", process+".log") }

// versionFile returns the file that records the Kubernetes version of the last control plane that
// became ready.
func (h *Host) versionFile() upgrade.VersionFile {
	return upgrade.VersionFile(h.path("master", "kubernetes-version"))
}

// AdminKubeconfig returns the path of the administrator's kubeconfig.
func (h *Host) AdminKubeconfig() string { return h.path("admin.kubeconfig") }

// PKIDir returns the directory that contains certificates and keys.
func (h *Host) PKIDir() string { return h.path("pki") }

// DeveloperPassword returns the path of the file with the initial password of the user developer.
func (h *Host) DeveloperPassword() string { return h.path("developer.password") }

// DriverCopies returns the directory in which a process keeps the last working copies of FlexVolume
// drivers.
func (h *Host) DriverCopies(process string) string { return h.path("flexvolume", process) }

// RouterDir returns the working directory of the node's router.
func (h *Host) RouterDir() string { return filepath.Join(h.RunDir(), "router") }

// podLogs returns the directory that contains the output of containers.
func (h *Host) podLogs() string { return filepath.Join(h.Node.VolumeDirectory, "pod-logs") }

// platformCgroup returns the parent cgroup of all platform processes. It is a sibling of the
// kubelet's pod cgroup.
func (h *Host) platformCgroup() string { return path.Join(h.Node.Slipway.CgroupRoot, "platform") }

func (h *Host) cgroup(process string) string { return path.Join(h.platformCgroup(), process) }

// PolicyTable returns the name of the nftables table that enforces network policies.
func (h *Host) PolicyTable() string { return h.Node.Slipway.NFTTable + "-policy" }

func (h *Host) policySocket() string { return h.path("cni", "policy.sock") }

// IdleTable returns the name of the nftables table for connections to idle services.
func (h *Host) IdleTable() string { return h.Node.Slipway.NFTTable + "-idle" }
