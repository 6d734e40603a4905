package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sample is the node-config-compute ConfigMap from OpenShift 3.11 Cluster Administration, section
// 2.11, without the cloud provider settings.
const sample = `
apiVersion: v1
authConfig: {authenticationCacheSize: 1000, authenticationCacheTTL: 5m, authorizationCacheSize: 1000, authorizationCacheTTL: 5m}
dnsBindAddress: 127.0.0.1:53
dnsDomain: cluster.local
dnsIP: 0.0.0.0
dnsNameservers: null
dnsRecursiveResolvConf: /etc/origin/node/resolv.conf
dockerConfig: {dockerShimRootDirectory: /var/lib/dockershim, dockerShimSocket: /var/run/dockershim.sock, execHandlerName: native}
enableUnidling: true
imageConfig: {format: "registry.reg-aws.openshift.com/openshift3/ose-${component}:${version}", latest: false}
iptablesSyncPeriod: 30s
kind: NodeConfig
kubeletArguments:
  bootstrap-kubeconfig: [/etc/origin/node/bootstrap.kubeconfig]
  cert-dir: [/etc/origin/node/certificates]
  enable-controller-attach-detach: ['true']
  feature-gates: ['RotateKubeletClientCertificate=true,RotateKubeletServerCertificate=true']
  node-labels: [node-role.kubernetes.io/compute=true]
  pod-manifest-path: [/etc/origin/node/pods]
  rotate-certificates: ['true']
masterClientConnectionOverrides: {acceptContentTypes: 'application/vnd.kubernetes.protobuf,application/json', burst: 40, contentType: application/vnd.kubernetes.protobuf, qps: 20}
masterKubeConfig: node.kubeconfig
networkConfig: {mtu: 8951, networkPluginName: redhat/openshift-ovs-subnet}
servingInfo: {bindAddress: 0.0.0.0:10250, bindNetwork: tcp4, clientCA: client-ca.crt}
volumeConfig: {localQuota: {perFSGroup: null}}
volumeDirectory: /var/lib/origin/openshift.local.volumes
`

// newNode returns the configuration of a host with the given node-config.yaml.
func newNode(t *testing.T, text string) *Config {
	t.Helper()
	dir := t.TempDir()
	if err := writeFile(NodeFile(dir), []byte("apiVersion: v1\nkind: NodeConfig\n"+text)); err != nil {
		t.Fatal(err)
	}
	c, err := Load(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// merge merges a group's configuration and writes the file.
func (c *Config) merge(t *testing.T, applied []byte, group string) (*Config, *GroupFile) {
	t.Helper()
	file, err := c.MergeGroup(applied, []byte(group))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(NodeFile(c.DataDir), file.Content, 0o600); err != nil {
		t.Fatal(err)
	}
	next, err := Load(c.DataDir, "")
	if err != nil {
		t.Fatal(err)
	}
	return next, file
}

const group = "apiVersion: v1\nkind: NodeConfig\n"

func TestGroupSetsAndRemovesOnlyItsKeys(t *testing.T) {
	c := newNode(t, "nodeName: second\nkubeletArguments: {max-pods: ['250'], cert-dir: [/own]}\nslipway: {bridge: own0}\n")
	first, file := c.merge(t, nil, group+"kubeletArguments: {max-pods: ['40'], image-gc-high-threshold: ['91'], cert-dir: [/own]}\n")
	arguments := first.Node.KubeletArguments
	if arguments["max-pods"][0] != "40" || arguments["image-gc-high-threshold"][0] != "91" {
		t.Errorf("arguments are %v", arguments)
	}
	if got := strings.Join(file.Changed, " "); got != "NodeConfig: kubeletArguments.image-gc-high-threshold NodeConfig: kubeletArguments.max-pods" {
		t.Errorf("changed keys are %s", got)
	}
	second, file := first.merge(t, file.Applied, group+"kubeletArguments: {node-labels: [zone=east]}\nnetworkConfig: {mtu: 1400}\n")
	arguments = second.Node.KubeletArguments
	if arguments["max-pods"][0] != "250" || arguments["image-gc-high-threshold"][0] != "90" || second.Node.NetworkConfig.MTU != 1400 {
		t.Errorf("after removing keys, arguments are %v and the MTU is %d", arguments, second.Node.NetworkConfig.MTU)
	}
	if arguments["cert-dir"][0] != "/own" || second.Node.NodeName != "second" || second.Node.Slipway.Bridge != "own0" {
		t.Errorf("settings of the host changed: %v, %q, %q", arguments, second.Node.NodeName, second.Node.Slipway.Bridge)
	}
	_, file = second.merge(t, file.Applied, group+"kubeletArguments: {node-labels: [zone=west]}\nnetworkConfig: {mtu: 1400}\n")
	if len(file.Changed) > 0 {
		t.Errorf("a change of labels changes %q", file.Changed)
	}
}

func TestExampleGroupOfOpenShiftGuideIsAccepted(t *testing.T) {
	c, _ := newNode(t, "").merge(t, nil, sample)
	node := c.Node
	if dir, _ := node.ManifestDir(); dir != "/etc/origin/node/pods" || node.NetworkConfig.MTU != 8951 || node.MasterClientConnectionOverrides.Burst != 40 {
		t.Errorf("configuration is %+v", node)
	}
	if node.DNSBindAddress == "127.0.0.1:53" || node.VolumeDirectory == "/var/lib/origin/openshift.local.volumes" || len(node.KubeletArguments["cert-dir"]) > 0 {
		t.Errorf("settings of the host changed: %+v", node)
	}
}

func TestGroupCannotSetPathsAndAddresses(t *testing.T) {
	c := newNode(t, "volumeDirectory: /own\n")
	for name, text := range map[string]string{
		"nodeName":                                           "nodeName: master",
		"volumeDirectory":                                    "volumeDirectory: /etc",
		"dnsBindAddress":                                     "dnsBindAddress: 0.0.0.0:53",
		"servingInfo.bindAddress":                            "servingInfo: {bindAddress: '0.0.0.0:10255'}",
		"servingInfo.certFile":                               "servingInfo: {certFile: /tmp/x, keyFile: /tmp/y}",
		"podManifestConfig.path":                             "podManifestConfig: {path: /tmp}",
		"proxyArguments.kubeconfig":                          "proxyArguments: {kubeconfig: [/tmp/x]}",
		"kubeletArguments.anonymous-auth":                    "kubeletArguments: {anonymous-auth: ['true']}",
		"kubeletArguments.pod-manifest-path":                 "kubeletArguments: {pod-manifest-path: [/tmp]}",
		"kubeletArguments.feature-gates":                     "kubeletArguments: {feature-gates: ['KubeletEnsureSecretPulledImages=false']}",
		"kubeletArguments.cert-dir":                          "kubeletArguments: {cert-dir: [/tmp]}",
		"kubeletArguments.image-credential-provider-bin-dir": "kubeletArguments: {image-credential-provider-bin-dir: [/tmp]}",
		"slipway.router.environment.TEMPLATE":                "slipway: {router: {environment: {TEMPLATE: /tmp/x}}}",
		"slipway.containerdDirectory":                        "slipway: {containerdDirectory: /tmp}",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.MergeGroup(nil, []byte(group+text+"\n"))
			if want := name + ": can only be set in node-config.yaml on the host itself"; err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error is %v, want %q", err, want)
			}
		})
	}
	if _, err := c.MergeGroup(nil, []byte(group+"volumeDirectory: /own\n")); err != nil {
		t.Errorf("a group with the value of the host: got error %v", err)
	}
}

func TestInvalidGroupIsRejected(t *testing.T) {
	c := newNode(t, "")
	for text, want := range map[string]string{
		"kind: MasterConfig\napiVersion: v1\n":               `node-config.yaml:1: kind: is "MasterConfig", must be NodeConfig`,
		group + "kubeletArgument: {}\n":                      `node-config.yaml:3: kubeletArgument: unknown key; did you mean kubeletArguments?`,
		group + "kubeletArguments: {max-pods: 40}\n":         `node-config.yaml:3: kubeletArguments.max-pods: is "40", must be a list`,
		group + "kubeletArguments: {node-labels: ['a b']}\n": `"a b" is not a label`,
		group + "networkConfig: {mtu: 5}\n":                  "node-config.yaml: networkConfig.mtu: ",
		"":                                                   "must contain one document",
		"a: [\n":                                             "node-config.yaml",
	} {
		if _, err := c.MergeGroup(nil, []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error is %v, want %q", text, err, want)
		}
	}
	if files, _ := filepath.Glob(filepath.Join(c.DataDir, "node", ".*")); len(files) > 0 {
		t.Errorf("after the check, the directory contains %q", files)
	}
}
