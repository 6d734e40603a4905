package host

import (
	"cmp"
	"path"
	"path/filepath"

	"github.com/slipway-platform/slipway/config"
	"github.com/slipway-platform/slipway/platform/upgrade"
)

// Path returns a path below the data directory.
func (h *Host) Path(names ...string) string {
	return filepath.Join(append([]string{h.DataDir}, names...)...)
}

// MasterFile returns the path of the control plane configuration.
func (h *Host) MasterFile() string { return cmp.Or(h.File, config.MasterFile(h.DataDir)) }

// NodeFile returns the path of the node configuration.
func (h *Host) NodeFile() string { return cmp.Or(h.File, config.NodeFile(h.DataDir)) }

// RunDir returns the directory for files that are valid only until the next boot.
func (h *Host) RunDir() string { return h.Node.Slipway.RunDirectory }

// Socket returns the path of the supervisor's socket.
func (h *Host) Socket() string { return filepath.Join(h.RunDir(), "slipway.sock") }

// EtcdSocket returns the path of the socket on which this host's etcd member serves clients.
func (h *Host) EtcdSocket() string { return filepath.Join(h.RunDir(), "etcd.sock") }

// SysctlRecord returns the path of the file that records changed kernel settings.
func (h *Host) SysctlRecord() string { return filepath.Join(h.RunDir(), "sysctls.json") }

// ContainerdState returns the directory for containerd's state, which is valid only until the next
// boot.
func (h *Host) ContainerdState() string { return filepath.Join(h.RunDir(), "containerd") }

// ContainerdSocket returns the path of containerd's socket.
func (h *Host) ContainerdSocket() string { return filepath.Join(h.RunDir(), "containerd.sock") }

// ImageSocket returns the path of the image service's socket. The service pulls pod images.
func (h *Host) ImageSocket() string { return filepath.Join(h.RunDir(), "images.sock") }

// ProfileSocket returns the path of the socket on which a process serves its profiles.
func (h *Host) ProfileSocket(process string) string {
	return filepath.Join(h.RunDir(), process+"-profiles.sock")
}

// LogFile returns the path of a process's log.
func (h *Host) LogFile(process string) string { return h.Path("log", process+".log") }

// VersionFile returns the file that records the Kubernetes version of the last control plane that
// became ready.
func (h *Host) VersionFile() upgrade.VersionFile {
	return upgrade.VersionFile(h.Path("master", "kubernetes-version"))
}

// AdminKubeconfig returns the path of the administrator's kubeconfig.
func (h *Host) AdminKubeconfig() string { return h.Path("admin.kubeconfig") }

// PKIDir returns the directory that contains certificates and keys.
func (h *Host) PKIDir() string { return h.Path("pki") }

// DeveloperPassword returns the path of the file with the initial password of the `developer` user.
func (h *Host) DeveloperPassword() string { return h.Path("developer.password") }

// DriverCopies returns the directory in which a process keeps the last working copies of FlexVolume
// drivers.
func (h *Host) DriverCopies(process string) string { return h.Path("flexvolume", process) }

// RouterDir returns the working directory of the node's router.
func (h *Host) RouterDir() string { return filepath.Join(h.RunDir(), "router") }

// PodLogs returns the directory that contains the output of containers.
func (h *Host) PodLogs() string { return filepath.Join(h.Node.VolumeDirectory, "pod-logs") }

// PlatformCgroup returns the parent cgroup of all platform processes. It is a sibling of the
// kubelet's pod cgroup.
func (h *Host) PlatformCgroup() string { return path.Join(h.Node.Slipway.CgroupRoot, "platform") }

// Cgroup returns the path of a process's cgroup.
func (h *Host) Cgroup(process string) string { return path.Join(h.PlatformCgroup(), process) }

// PolicyTable returns the name of the nftables table that enforces network policies.
func (h *Host) PolicyTable() string { return h.Node.Slipway.NFTTable + "-policy" }

// PolicySocket returns the path of the socket on which the network policy component serves requests
// to prepare pods.
func (h *Host) PolicySocket() string { return h.Path("cni", "policy.sock") }

// ResolvableFile returns the path of the file with the names that the node's pods can resolve.
func (h *Host) ResolvableFile() string { return h.Path("cni", "resolvable.json") }

// IdleTable returns the name of the nftables table for connections to idle services.
func (h *Host) IdleTable() string { return h.Node.Slipway.NFTTable + "-idle" }
