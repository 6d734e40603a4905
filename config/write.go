package config

import (
	"fmt"
	"os"
	"path/filepath"
)

const masterHead = `# This host's control plane: a MasterConfig of OpenShift 3 and the block "slipway".
# A key that is left out has its default; "slipway config view" prints them all.
# Relative paths are relative to this folder. A change takes effect at the next start.
`

const nodeHead = `# This host's node: a NodeConfig of OpenShift 3 and the block "slipway".
# A key that is left out has its default; "slipway config view" prints them all.
# Relative paths are relative to this folder. A change takes effect at the next start.
# Without nodeIP the node uses the address that the machine has at each start.
`

// writeDefaultFiles writes the files of the data directory that do not exist.
func writeDefaultFiles(dataDir, hostName string) error {
	for path, content := range map[string]string{
		MasterFile(dataDir): defaultMasterFile(),
		NodeFile(dataDir):   defaultNodeFile(hostName),
	} {
		if _, err := os.Lstat(path); err == nil {
			continue
		}
		if err := writeFile(path, []byte(content)); err != nil {
			return fmt.Errorf("write default configuration: %w", err)
		}
	}
	return nil
}

func defaultMasterFile() string {
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
auditConfig:
  enabled: false
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

// writeFile writes a file with mode 0600 so that it is there completely or not at all, also after a
// loss of power. Folders that lack are made with mode 0700, the data directory itself with 0755.
func writeFile(path string, content []byte) error {
	folder := filepath.Dir(path)
	if err := os.MkdirAll(filepath.Dir(folder), 0o755); err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	temporary := filepath.Join(folder, "."+filepath.Base(path)+".new")
	f, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Sync()
	}
	if closing := f.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
		return err
	}
	return syncFolder(folder)
}

// syncFolder makes a rename in folder last.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
