// Package flannel tests clusters whose pod network is provided by a CNI plugin that the
// administrator installs (networkConfig.networkPluginName: cni). The plugin is flannel, with a real
// flanneld on each of two hosts. The tests cover two configurations: etcd with host-gw, according
// to OpenShift Container Platform 3.9 Architecture, 5.3.2.1 Flannel SDN; and the Kubernetes API
// with VXLAN.
package flannel

import (
	"context"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
	"github.com/slipway-platform/slipway/test/kit/flannel"
)

func TestMain(m *testing.M) { kit.Main(m) }

// hosts contains the cluster's hosts. The first host is the master.
type hosts struct{ flannel.Hosts }

// stop stops flanneld on all hosts, and removes the network objects that flanneld and the CNI
// plugins created.
func (h hosts) stop(t *testing.T) {
	t.Helper()
	for _, host := range h.Hosts {
		host.Daemon.Stop()
		if err := flannel.Remove(host.Cluster); err != nil {
			t.Fatal(err)
		}
		output(t, host, "ip", "-4", "route", "flush", "root", "10.128.0.0/14")
	}
}

// routes returns a host's routes to the pod network.
func routes(t *testing.T, host *flannel.Host) string {
	t.Helper()
	return output(t, host, "ip", "-4", "route", "show", "root", "10.128.0.0/14")
}

// output runs a program on the host and returns its output.
func output(t *testing.T, host *flannel.Host, command ...string) string {
	t.Helper()
	var content []byte
	err := host.Do(func() (err error) {
		content, err = exec.Command(command[0], command[1:]...).CombinedOutput()
		return err
	})
	if err != nil {
		t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, content)
	}
	return string(content)
}

// server returns a pod on a node, and a service for the pod. The pod serves its name over HTTP on
// port 8080 and on host port 9080.
func server(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: %[1]s, labels: {app: %[1]s}}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[3]s
    command: [sh, -c, "mkdir /tmp/www && echo I am $(hostname) >/tmp/www/index.html && exec httpd -f -vv -p 8080 -h /tmp/www"]
    ports: [{containerPort: 8080, hostPort: 9080}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
---
apiVersion: v1
kind: Service
metadata: {name: %[1]s}
spec: {selector: {app: %[1]s}, ports: [{port: 80, targetPort: 8080}]}
---
`, name, node, kit.ToolsImage)
}

// checkPods creates a pod on each host. It checks that each pod can reach the other pods, external
// addresses, and services by name, and that each host has routes to the pods.
func (h hosts) checkPods(t *testing.T) {
	t.Helper()
	c := h.Hosts[0].Cluster.For(t)
	for _, host := range h.Hosts {
		c.Apply(server("pod-"+host.Node, host.Node))
	}
	for i, host := range h.Hosts {
		pod := c.WaitPodRunning("pod-" + host.Node)
		address, subnet := netip.MustParseAddr(pod.Status.PodIP), netip.MustParsePrefix(host.Files.Subnet())
		if !subnet.Masked().Contains(address) {
			t.Errorf("pod %s has the address %s, outside flannel's subnet %s", pod.Name, address, subnet)
		}
		other := h.Hosts[1-i]
		page := "I am pod-" + host.Node
		from := c.WaitPodRunning("pod-" + other.Node)
		c.WaitFetch(from.Name, fmt.Sprintf("http://%s:8080/", address), page)
		c.WaitFetch(from.Name, fmt.Sprintf("http://pod-%s.%s.svc/", host.Node, c.Namespace), page)
		c.WaitFetch(from.Name, fmt.Sprintf("http://%s:9080/", host.Address), page)
		c.WaitFor("the address of the client in the log of "+pod.Name, func(context.Context) error {
			log, err := c.TryOC("logs", pod.Name)
			if err == nil && !strings.Contains(log, from.Status.PodIP) {
				err = fmt.Errorf("the log is %q", log)
			}
			return err
		})
		c.OC("expose", "service", pod.Name, "--hostname="+pod.Name+".example.com")
		c.WaitVisit("http://"+pod.Name+".example.com/", page)
	}
}
