package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// These are the stock side's networks. The service network is kubeadm's default. The pod network is
// the subnet of Slipway's default network that the controllers assign to the first node.
const (
	serviceCIDR    = "10.96.0.0/12"
	serviceAddress = "10.96.0.1"
	dnsAddress     = "10.96.0.10"
	podsCIDR       = "10.128.0.0/14"
	nodeCIDR       = "10.128.0.0/23"
	podGateway     = "10.128.0.1/23"
	bridge         = "bench0"
)

// kubeletFile is kubeadm's file with a few changes. failCgroupV1 and cgroupfs support machines with
// cgroup version 1. The cgroup is separate, certificates are given and not rotated, and no pods are
// evicted if the disk is nearly full.
const kubeletFile = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication:
  anonymous: {enabled: false}
  webhook: {enabled: true}
  x509: {clientCAFile: $pki/node/ca.crt}
authorization: {mode: Webhook}
tlsCertFile: $pki/node/server.crt
tlsPrivateKeyFile: $pki/node/server.key
cgroupDriver: cgroupfs
cgroupRoot: $cgroup
failCgroupV1: false
failSwapOn: false
clusterDNS: [$dns]
clusterDomain: cluster.local
containerRuntimeEndpoint: unix://$containerd
healthzBindAddress: 127.0.0.1
healthzPort: 10248
staticPodPath: $dir/manifests
maxPods: 300
evictionHard: {nodefs.available: 1%, imagefs.available: 1%, memory.available: 100Mi}
`

// proxyFile is kubeadm's file with two changes. It selects nftables, and it does not set the sysctl
// nf_conntrack_max, because the kernel rejects this in a network namespace.
const proxyFile = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clientConnection: {kubeconfig: $pki/node/kube-proxy.kubeconfig}
clusterCIDR: $pods
hostnameOverride: $node
conntrack: {maxPerCore: 0}
`

// containerdFile changes only a few of the defaults. The changes let containerd run next to another
// containerd and use the stock programs. They also let containerd run on machines where processes
// lack CAP_SYS_RESOURCE and therefore cannot lower an oom_score_adj.
const containerdFile = `version = 4
root = "$dir/containerd"
state = "$dir/run"

[plugins."io.containerd.server.v1.grpc"]
address = "$containerd"

[plugins."io.containerd.server.v1.ttrpc"]
address = "$containerd.ttrpc"

[plugins."io.containerd.shim.v1.manager"]
socket_dir = "$dir/s"

[plugins."io.containerd.cri.v1.images"]
pinned_images = { sandbox = "$image" }

[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = $restrict

[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["$payload", "$programs"]
conf_dir = "$dir/cni"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"

[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "$payload/runc"
SystemdCgroup = false
`

// conflist configures the pod network with the same plugin that Slipway uses.
const conflist = `{"cniVersion": "1.1.0", "name": "bench", "plugins": [{"type": "slipway-cni", "capabilities": {"portMappings": true},
  "bridge": "$bridge", "podCIDR": "$subnet", "stateDir": "$dir/cni-state", "nftTable": "bench", "hairpin": true}]}
`

// writeFiles writes the configuration files.
func (s *stock) writeFiles() error {
	fields := strings.NewReplacer(
		"$pki", s.host.Path("pki"), "$dir", s.host.Dir, "$cgroup", s.host.CgroupRoot, "$dns", dnsAddress,
		"$containerd", s.containerdSocket(), "$pods", podsCIDR, "$node", s.nodeName, "$image", pauseImage,
		"$restrict", fmt.Sprint(!lowersOOMScore()), "$payload", s.payload.Dir, "$programs", s.programs,
		"$bridge", bridge, "$subnet", nodeCIDR)
	for _, dir := range []string{"log", "manifests"} {
		if err := os.MkdirAll(s.host.Path(dir), 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
	}
	for name, content := range map[string]string{
		"kubelet.yaml": kubeletFile, "proxy.yaml": proxyFile, "containerd.toml": containerdFile, "cni/10-bench.conflist": conflist,
	} {
		path := s.host.Path(name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return fmt.Errorf("create directory: %w", err)
		}
		if err := os.WriteFile(path, []byte(fields.Replace(content)), 0o600); err != nil {
			return fmt.Errorf("write configuration: %w", err)
		}
	}
	return nil
}

func (s *stock) containerdSocket() string { return s.host.Path("run", "containerd.sock") }

// lowersOOMScore reports whether this process, and therefore its children, can lower oom_score_adj.
// It tries to lower its own value.
func lowersOOMScore() bool {
	const file = "/proc/self/oom_score_adj"
	before, err := os.ReadFile(file)
	if err != nil || os.WriteFile(file, []byte("-999"), 0) != nil {
		return false
	}
	return os.WriteFile(file, before, 0) == nil
}

// makeCgroups creates the cgroup in each hierarchy, because the kubelet does not start if its
// configured cgroup does not exist.
func makeCgroups(root string) error {
	mounts, err := mountinfo.GetMounts(mountinfo.FSTypeFilter("cgroup", "cgroup2"))
	if err != nil {
		return fmt.Errorf("list cgroups: %w", err)
	}
	var problems []error
	for _, m := range mounts {
		problems = append(problems, os.MkdirAll(filepath.Join(m.Mountpoint, root), 0o755))
	}
	return errors.Join(problems...)
}
