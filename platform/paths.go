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

// MasterFile returns the file with the configuration of the control plane.
func (h *Host) MasterFile() string { return cmp.Or(h.file, config.MasterFile(h.DataDir)) }

// NodeFile returns the file with the configuration of the node.
func (h *Host) NodeFile() string { return cmp.Or(h.file, config.NodeFile(h.DataDir)) }

// RunDir returns the directory of files that are only valid until the next boot.
func (h *Host) RunDir() string { return h.Node.Slipway.RunDirectory }

// Socket returns the socket of the supervisor.
func (h *Host) Socket() string { return filepath.Join(h.RunDir(), "slipway.sock") }

func (h *Host) etcdSocket() string { return filepath.Join(h.RunDir(), "etcd.sock") }

// ContainerdState returns containerd's directory of state that is only valid until the next boot.
func (h *Host) ContainerdState() string { return filepath.Join(h.RunDir(), "containerd") }

// ContainerdSocket returns the socket of containerd.
func (h *Host) ContainerdSocket() string { return filepath.Join(h.RunDir(), "containerd.sock") }

// imageSocket returns the socket of the service that pulls the images of pods.
func (h *Host) imageSocket() string { return filepath.Join(h.RunDir(), "images.sock") }

// LogFile returns the log of a process.
func (h *Host) LogFile(process string) string { return h.path("log", process+".log") }

// versionFile returns the record of the version of Kubernetes of the control plane that was ready
// last.
func (h *Host) versionFile() upgrade.VersionFile {
	return upgrade.VersionFile(h.path("master", "kubernetes-version"))
}

// AdminKubeconfig returns the kubeconfig of the administrator.
func (h *Host) AdminKubeconfig() string { return h.path("admin.kubeconfig") }

// PKIDir returns the directory of certificates and keys.
func (h *Host) PKIDir() string { return h.path("pki") }

// DeveloperPassword returns the file with the first password of the user developer.
func (h *Host) DeveloperPassword() string { return h.path("developer.password") }

// DriverCopies returns the directory in which a process keeps last-good copies of FlexVolume
// drivers.
func (h *Host) DriverCopies(process string) string { return h.path("flexvolume", process) }

// RouterDir returns the working directory of the node's router.
func (h *Host) RouterDir() string { return filepath.Join(h.RunDir(), "router") }

// podLogs returns the directory of the output of containers.
func (h *Host) podLogs() string { return filepath.Join(h.Node.VolumeDirectory, "pod-logs") }

// platformCgroup returns the parent of the cgroups of all processes, next to the kubelet's cgroup
// of pods.
func (h *Host) platformCgroup() string { return path.Join(h.Node.Slipway.CgroupRoot, "platform") }

func (h *Host) cgroup(process string) string { return path.Join(h.platformCgroup(), process) }

// PolicyTable returns the name of the nftables table that enforces network policies.
func (h *Host) PolicyTable() string { return h.Node.Slipway.NFTTable + "-policy" }

func (h *Host) policySocket() string { return h.path("cni", "policy.sock") }

// IdleTable returns the nftables table of connections to idle services.
func (h *Host) IdleTable() string { return h.Node.Slipway.NFTTable + "-idle" }
