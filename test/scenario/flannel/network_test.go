package flannel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/internal/networkplugin"
	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/flannel"
)

func TestFlannelConnectsPods(t *testing.T) {
	h := hosts{flannel.NewHosts(t)}
	checkMissingPlugin(t, h)
	c := h.Hosts[0].Cluster

	c.MustSlipway("etcdctl", "put", "/coreos.com/network/config", h.NetConf(t, "host-gw"))
	etcd := fmt.Sprintf("FLANNEL_ETCD_ENDPOINTS=https://%s:2379", c.Address)
	options := fmt.Sprintf(`FLANNEL_OPTIONS="-ip-masq -etcd-cafile=%[1]s.etcd-ca.crt -etcd-certfile=%[1]s.etcd-client.crt -etcd-keyfile=%[1]s.etcd-client.key"`, c.Path("pki", "master"))
	h.Start(t, etcd, "FLANNEL_ETCD_PREFIX=/coreos.com/network", options)
	t.Run("HostGateway", func(t *testing.T) {
		h.checkPods(t)
		for i, host := range h.Hosts {
			want := fmt.Sprintf("%s via %s dev eth0", subnetOf(h.Hosts[1-i]), h.Hosts[1-i].Address)
			if list := routes(t, host); !strings.Contains(list, want) || !strings.Contains(list, subnetOf(host)+" dev cni0") {
				t.Errorf("routes of %s, want %s:\n%s", host.Node, want, list)
			}
		}
	})
	t.Run("NothingOfTheOwnNetwork", func(t *testing.T) { checkNoOwnNetwork(t, h) })
	t.Run("Build", func(t *testing.T) { checkBuild(t, c.For(t)) })
	t.Run("NetworkCheck", func(t *testing.T) { checkDiagnostic(t, c.For(t)) })

	c.OC("delete", "pod,service,route", "pod-first", "pod-second")
	h.stop(t)
	for _, host := range h.Hosts {
		host.Files.Forget(t)
	}
	h.StartWithAPI(t, "vxlan")
	t.Run("VXLAN", func(t *testing.T) {
		h.checkPods(t)
		for i, host := range h.Hosts {
			if list, want := routes(t, host), subnetOf(h.Hosts[1-i])+" via "+strings.Split(subnetOf(h.Hosts[1-i]), "/")[0]+" dev flannel.1"; !strings.Contains(list, want) {
				t.Errorf("routes of %s, want %s:\n%s", host.Node, want, list)
			}
			if cidr := c.OC("get", "node", host.Node, "-o", "jsonpath={.spec.podCIDR}"); cidr != subnetOf(host) {
				t.Errorf("flannel's subnet of %s is %s, the subnet of the node is %s", host.Node, subnetOf(host), cidr)
			}
		}
	})
	t.Run("LabelsForOtherPlugins", func(t *testing.T) { checkLabels(t, h.Hosts[0]) })
	t.Run("ChangeToOwnNetwork", h.checkChange)
}

// labeled is a pod with a label for Nuage's plugin, as in OpenShift Container Platform 3.9
// Architecture, 5.3.3.
const labeled = `
apiVersion: v1
kind: Pod
metadata: {name: labeled, labels: {nuage.io/policy-group: zone-a}}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %s, command: [sleep, "3600"]}]
`

// checkLabels checks that a CNI plugin receives the pod's name, so that it can get the pod's labels
// from the API.
func checkLabels(t *testing.T, host *flannel.Host) {
	c := host.For(t)
	host.Files.Record(t)
	c.WaitFor("arguments of the plugin", func(context.Context) error {
		c.Apply(fmt.Sprintf(labeled, host.Node, kit.ToolsImage))
		c.WaitPodRunning("labeled")
		recorded := host.Files.Recorded()
		if strings.Contains(recorded, "K8S_POD_NAMESPACE="+c.Namespace+";K8S_POD_NAME=labeled;") {
			return nil
		}
		// Retry with a new pod, because this pod might have started before the runtime loaded the
		// configuration.
		c.OC("delete", "pod", "labeled")
		return fmt.Errorf("the plugin has received %q", recorded)
	})
	c.OC("delete", "pod", "labeled")
}

// checkChange changes a cluster from flannel to Slipway's own network, as the guide describes.
func (h hosts) checkChange(t *testing.T) {
	for _, host := range h.Hosts {
		host.MustSlipway("down")
	}
	h.stop(t)
	for _, host := range h.Hosts {
		kit.Edit(t, host.MasterFile(), "networkPluginName: cni", "networkPluginName: "+networkplugin.NetworkPolicy)
		host.MustSlipway("up")
	}
	c := h.Hosts[0].For(t)
	for i, host := range h.Hosts {
		from, to := "pod-"+h.Hosts[1-i].Node, "pod-"+host.Node
		c.WaitFetch(from, fmt.Sprintf("http://%s.%s.svc/", to, c.Namespace), "I am "+to)
		c.WaitFetch(from, "http://"+c.Pod(to).Status.PodIP+":8080/", "I am "+to)
		if list := routes(t, host); strings.Contains(list, "cni0") || strings.Contains(list, "flannel") || !strings.Contains(list, "slipway0") {
			t.Errorf("routes of %s:\n%s", host.Node, list)
		}
	}
	// Unlike flannel, Slipway's own network enforces policies.
	c.Apply("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny-all}, spec: {podSelector: {}}}")
	c.WaitBlocked("pod-first", "http://"+c.Pod("pod-second").Status.PodIP+":8080/")
}

// checkMissingPlugin checks that the status describes the remedy if no network plugin is installed.
func checkMissingPlugin(t *testing.T, h hosts) {
	t.Helper()
	for _, host := range h.Hosts {
		host.WaitFor("status without a network plugin", func(ctx context.Context) error {
			result := host.Slipway("status")
			if !strings.Contains(result.Stdout, "has no CNI configuration, so pods get no network; install a network plugin on this host") {
				return fmt.Errorf("slipway status: exit code %d\n%s", result.Code, result.Stdout)
			}
			condition, err := h.Ready(ctx, host.Node)
			if err == nil && !strings.Contains(condition.Message, "cni plugin not initialized") {
				err = fmt.Errorf("the condition of node %s is %s: %s", host.Node, condition.Status, condition.Message)
			}
			return err
		})
	}
}

// subnetOf returns a host's subnet in the format used in routes.
func subnetOf(host *flannel.Host) string {
	return strings.Replace(host.Files.Subnet(), ".1/", ".0/", 1)
}

// checkNoOwnNetwork checks that the hosts have none of the devices and tables of Slipway's own
// network.
func checkNoOwnNetwork(t *testing.T, h hosts) {
	for _, host := range h.Hosts {
		for _, command := range [][]string{{"ip", "-br", "link"}, {"nft", "list", "tables"}} {
			output := output(t, host, command...)
			for _, own := range []string{"slipway0", "vxlan_sys_4789", "table ip slipway\n", "table ip slipway-policy", "table netdev slipway"} {
				if strings.Contains(output, own) {
					t.Errorf("%s has %s:\n%s", host.Node, own, output)
				}
			}
		}
		host.WaitFor("status without a message about the network", func(context.Context) error {
			if status := host.MustSlipway("status"); strings.Contains(status, "\nnetwork:") {
				return errors.New(status)
			}
			return nil
		})
	}
	if output, err := h.Hosts[0].TryOC("adm", "pod-network", "isolate-projects", "default"); err == nil || !strings.Contains(err.Error(), `using plugin: "cni"`) {
		t.Errorf("oc adm pod-network: %v\n%s", err, output)
	}
}

// checkBuild runs a build in a pod. The build pushes its image to the registry.
func checkBuild(t *testing.T, c *kit.Cluster) {
	dir := t.TempDir()
	for name, content := range map[string]string{"Dockerfile": "FROM scratch\nCOPY page /page\n", "page": "built\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.OC("new-build", "--name=page", "--binary", "--strategy=docker")
	if output := c.OC("start-build", "page", "--from-dir="+dir, "--follow", "--wait"); !strings.Contains(output, "page") {
		t.Errorf("oc start-build:\n%s", output)
	}
	if image := c.OC("get", "istag", "page:latest", "-o", "jsonpath={.image.dockerImageReference}"); !strings.Contains(image, "@sha256:") {
		t.Errorf("the image is %q", image)
	}
}

// checkDiagnostic checks that NetworkCheck reports a problem only if network policies exist,
// because flannel does not enforce them.
func checkDiagnostic(t *testing.T, c *kit.Cluster) {
	if output, err := c.TryOC("adm", "diagnostics", "NetworkCheck"); err != nil {
		t.Errorf("oc adm diagnostics NetworkCheck: %v\n%s", err, output)
	}
	c.Apply("{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, metadata: {name: deny-all}, spec: {podSelector: {}}}")
	defer c.OC("delete", "networkpolicy", "deny-all")
	output, err := c.TryOC("adm", "diagnostics", "NetworkCheck")
	if err == nil || strings.Count(err.Error(), "\n       isolation: pods on node ") != 8 || !strings.Contains(err.Error(), "Errors seen: 8") {
		t.Errorf("oc adm diagnostics NetworkCheck with a network policy: %v\n%s", err, output)
	}
}
