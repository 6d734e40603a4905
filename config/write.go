package config

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/slipway-platform/slipway/internal/atomicfile"
)

const masterHead = `# This host's control plane: a MasterConfig of OpenShift 3 and the block "slipway".
# Omitted keys have their defaults; "slipway config view" prints them all.
# Relative paths are relative to this directory. A change takes effect at the next start.
`

const nodeHead = `# This host's node: a NodeConfig of OpenShift 3 and the block "slipway".
# Omitted keys have their defaults; "slipway config view" prints them all.
# Relative paths are relative to this directory. A change takes effect at the next start.
# Without nodeIP the node uses the address that the machine has at each start.
`

// WriteDefaults writes the two configuration files in the data directory if they do not exist, so
// that administrators can edit them. It replaces a file from an earlier version that was never
// edited. It is called only when a host starts.
func WriteDefaults(dataDir string) error {
	for path, content := range map[string]string{
		MasterFile(dataDir): defaultMasterFile(),
		NodeFile(dataDir):   defaultNodeFile(hostName()),
	} {
		if _, err := os.Lstat(path); err == nil && !unchanged(path) {
			continue
		}
		if err := writeFile(path, []byte(content)); err != nil {
			return fmt.Errorf("write default configuration: %w", err)
		}
	}
	return nil
}

// WriteSettings writes the cluster's settings to the MasterConfig of a host that joins the cluster.
func WriteSettings(dataDir, settings string) error {
	if err := writeFile(MasterFile(dataDir), []byte(settings)); err != nil {
		return fmt.Errorf("write cluster settings: %w", err)
	}
	return nil
}

// unchanged reports whether a file contains the MasterConfig that earlier versions wrote on the
// first start, in which the audit log was disabled.
func unchanged(path string) bool {
	content, err := os.ReadFile(path)
	return err == nil && string(content) == masterFileWithoutDNS()+"auditConfig:\n  enabled: false\n"
}

// defaultMasterFile returns the MasterConfig that the first start writes. As in OpenShift 3, the
// master resolves service names for clients outside pods. etcd uses upstream's default ports.
// Clusters created by earlier versions, whose file does not contain etcdConfig, keep the ports that
// DefaultMaster sets.
func defaultMasterFile() string {
	return masterFileWithoutDNS() + `etcdConfig:
  address: 127.0.0.1:2379
  peerAddress: 127.0.0.1:2380
dnsConfig:
  bindAddress: 0.0.0.0:8053
`
}

func masterFileWithoutDNS() string {
	c := &MasterConfig{}
	DefaultMaster(c, "/")
	network := c.NetworkConfig.ClusterNetworks[0]
	return masterHead + fmt.Sprintf(`apiVersion: v1
kind: MasterConfig
servingInfo:
  bindAddress: %s
networkConfig:
  clusterNetworks:
  - cidr: %s
    hostSubnetLength: %d
  serviceNetworkCIDR: %s
`, c.ServingInfo.BindAddress, network.CIDR, network.HostSubnetLength, c.NetworkConfig.ServiceNetworkCIDR)
}

func defaultNodeFile(hostName string) string {
	c := &NodeConfig{}
	DefaultNode(c, "/", hostName)
	return nodeHead + fmt.Sprintf(`apiVersion: v1
kind: NodeConfig
nodeName: %s
servingInfo:
  bindAddress: %s
dnsDomain: %s
kubeletArguments:
  max-pods: [%q]
`, c.NodeName, c.ServingInfo.BindAddress, c.DNSDomain, c.KubeletArguments["max-pods"][0])
}

// writeFile writes a file that only its owner can read. It creates missing directories with mode
// 0700, and the data directory with mode 0755.
func writeFile(path string, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(path, content, 0o600)
}
