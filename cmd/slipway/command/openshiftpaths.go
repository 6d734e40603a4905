package command

import (
	"path/filepath"

	"github.com/slipway-platform/slipway/platform/host"
)

// openShiftPath is a path in OpenShift 3's documentation, with its counterpart on a host.
type openShiftPath struct {
	// documented is the path in the documentation.
	documented string
	// path is the counterpart, or "" if there is none.
	path string
	// content describes the file, or explains why there is no counterpart.
	content string
}

// openShiftPaths returns the paths in OpenShift 3's documentation that have a counterpart on a
// host, or that a host does not need. It omits paths inside containers, because they are the same
// as in OpenShift 3. For a host without a control plane, it omits the master paths.
func openShiftPaths(h *host.Host) []openShiftPath {
	if h.Joined() {
		return nodePaths(h)
	}
	return append(masterPaths(h), nodePaths(h)...)
}

// masterPaths returns the paths on masters.
func masterPaths(h *host.Host) []openShiftPath {
	pki := func(name string) string { return filepath.Join(h.PKIDir(), name) }
	file := h.MasterFile()
	return []openShiftPath{
		{"/etc/origin/master/master-config.yaml", file, "configuration of the control plane"},
		{"/etc/origin/master/scheduler.json", h.Master.KubernetesMasterConfig.SchedulerConfigFile, "scheduler policy (schedulerConfigFile)"},
		{"/etc/origin/master/master.env", "", "not needed: arguments are in master-config.yaml"},
		{"/etc/origin/master/ca.crt", pki("ca.crt"), "certificate authority of the cluster"},
		{"/etc/origin/master/ca.serial.txt", "", "not needed: serial numbers are random"},
		{"/etc/origin/master/admin.kubeconfig", h.AdminKubeconfig(), "credentials of system:admin, with certificate and key"},
		{"/etc/origin/node/pods/controller.yaml", "", "the control plane is a process; see `slipway components`"},
		{"/etc/origin/node/pods/etcd.yaml", "", "etcd is a component of the control plane"},
		{"/etc/etcd/etcd.conf", file, "etcdConfig of the configuration of the control plane"},
		{"/etc/etcd/ca.crt", pki("master.etcd-ca.crt"), "certificate authority of etcd"},
		{"/etc/etcd/peer.crt", pki("etcd.server.crt"), "certificate of etcd for clients and members"},
		{"/etc/etcd/peer.key", pki("etcd.server.key"), "its key"},
		{"/etc/etcd/ca/openssl.cnf", "", "Slipway issues the certificates"},
		{"/etc/etcd/generated_certs", "", "Slipway issues the certificates"},
		{"/var/lib/etcd", h.Master.EtcdDirectory(), "data of etcd"},
	}
}

// nodePaths returns the paths on nodes.
func nodePaths(h *host.Host) []openShiftPath {
	manifests, _ := h.Node.ManifestDir()
	return []openShiftPath{
		{"/etc/origin/node/node-config.yaml", h.NodeFile(), "configuration of the node"},
		{"/etc/origin/node/pods", manifests, "static pods: podManifestConfig"},
		{"/etc/origin/node/certificates", filepath.Join(h.PKIDir(), "node"), "certificates and kubeconfigs of the node"},
		{"/var/lib/origin/openshift.local.volumes", h.Node.VolumeDirectory, "pods, and logs of their containers"},
		{"/var/lib/docker", h.Node.Slipway.ContainerdDirectory, "containers and images"},
		{"/var/lib/dockershim", "", "containerd keeps the state of pods"},
		{"/var/run/dockershim.sock", h.ContainerdSocket(), "socket of the container runtime"},
		{"/var/lib/haproxy/conf", filepath.Join(h.RouterDir(), "conf"), "configuration of the router of the node"},
		{"/usr/libexec/kubernetes/kubelet-plugins/volume/exec", h.Node.VolumePluginDir(), "FlexVolume drivers"},
	}
}
