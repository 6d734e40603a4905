package hosts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// server returns a pod on a node. The pod serves its name over HTTP on port 8080, and logs every
// request.
func server(name, node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata:
  name: %[1]s
  labels: {app: %[1]s}
spec:
  nodeSelector: {kubernetes.io/hostname: %[2]s}
  terminationGracePeriodSeconds: 1
  containers:
  - name: server
    image: %[3]s
    command: [sh, -c, "mkdir /tmp/www && echo I am $(hostname) >/tmp/www/index.html && exec httpd -f -vv -p 8080 -h /tmp/www"]
    readinessProbe:
      httpGet: {path: /, port: 8080}
      periodSeconds: 1
---
`, name, node, kit.ToolsImage)
}

// newServers creates the pod "near" on the first host and the pod "far" on the second host, and a
// service for each pod.
func newServers(t *testing.T) (cluster *kit.Cluster, host *kit.Host) {
	t.Helper()
	c, host := kit.SharedHost(t)
	waitNodeReady(c, second)
	c.Apply(server("near", c.NodeName()) + server("far", second))
	for _, name := range []string{"near", "far"} {
		c.WaitPodRunning(name)
		c.OC("expose", "pod", name, "--port", "80", "--target-port", "8080")
	}
	return c, host
}

func TestPodsOfBothHostsReachEachOther(t *testing.T) {
	c, _ := newServers(t)
	for from, to := range map[string]string{"near": "far", "far": "near"} {
		page := "I am " + to
		c.WaitFetch(from, fmt.Sprintf("http://%s:8080/", c.Pod(to).Status.PodIP), page)
		c.WaitFetch(from, fmt.Sprintf("http://%s.%s.svc/", to, c.Namespace), page)
	}
	// Packets to another host must keep the pod's source address.
	c.WaitFor("the address of the client in the log of the server", func(context.Context) error {
		log, err := c.TryOC("logs", "far")
		if err == nil && !strings.Contains(log, c.Pod("near").Status.PodIP) {
			err = fmt.Errorf("the log is %q", log)
		}
		return err
	})
}

func TestCommandsReachPodsOfTheSecondHost(t *testing.T) {
	c, _ := newServers(t)
	if got := c.Exec("far", "hostname"); got != "far\n" {
		t.Errorf("oc exec printed %q", got)
	}
	line, err := c.StartOC("port-forward", "pod/far", ":8080").ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(strings.Fields(line)[2], "http://")
	c.WaitFor("page through oc port-forward", func(ctx context.Context) error { return fetchFar(ctx, c, "http://"+address) })
}

func TestNetworkPoliciesHoldAcrossHosts(t *testing.T) {
	c, host := newServers(t)
	c.Apply(server("other", c.NodeName()))
	c.WaitPodRunning("other")
	url := fmt.Sprintf("http://%s:8080/", c.Pod("far").Status.PodIP)
	for _, name := range []string{"near", "other"} {
		c.WaitFetch(name, url, "I am far")
	}
	c.OC("expose", "service", "far", "--hostname=far.example.com")
	c.WaitVisit(farRoute, "I am far")
	c.Apply(`
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {name: from-near}
spec:
  podSelector: {matchLabels: {app: far}}
  ingress:
  - from:
    - podSelector: {matchLabels: {app: near}}
`)
	c.WaitBlocked("other", url)
	c.WaitFetch("near", url, "I am far")
	checkTrace(t, c, host)
	checkRoute(t, c)
}

// farRoute is the URL of the route to the pod "far".
const farRoute = "http://far.example.com/"

// waitClosed waits until the router on the first host cannot reach the pod "far".
func waitClosed(c *kit.Cluster) {
	c.WaitFor("route that the policy closes", func(ctx context.Context) error {
		if page, err := c.Visit(ctx, farRoute, ""); err == nil {
			return fmt.Errorf("the response is %q", page)
		}
		return nil
	})
}

// checkRoute checks that a router on another host can reach the pod "far" after the steps in
// OpenShift 3.11 Cluster Administration, NetworkPolicy and Routers. Before that, only the pod
// "near" can reach it.
func checkRoute(t *testing.T, c *kit.Cluster) {
	t.Helper()
	waitClosed(c)
	t.Cleanup(func() { c.OC("label", "namespace", "default", "name-") })
	c.OC("label", "namespace", "default", "name=default")
	c.Apply(`
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: allow-from-default-namespace
spec:
  podSelector:
  ingress:
  - from:
    - namespaceSelector:
        matchLabels:
          name: default
`)
	c.WaitVisit(farRoute, "I am far")
	c.OC("label", "namespace", "default", "name-")
	waitClosed(c)
}

// checkTrace checks that both hosts report how their rules affect packets to the pod "far", which
// only the pod "near" can reach.
func checkTrace(t *testing.T, c *kit.Cluster, host *kit.Host) {
	t.Helper()
	far := c.Pod("far").Status.PodIP
	for want, args := range map[string][]string{
		"No rule drops the packet, and the server responds.":   {c.Namespace + "/near", far, "8080"},
		"No rule drops the packet, and the server rejects it:": {"--udp", c.Namespace + "/near", far, "8080"},
	} {
		if output := c.MustSlipway(append([]string{"network", "trace"}, args...)...); !strings.Contains(output, want) {
			t.Errorf("trace of the pod with permission, arguments %q:\n%s", args, output)
		}
	}
	c.StartOC("exec", "other", "--", "sh", "-c", "while :; do timeout 1 wget -q -O - http://"+far+":8080/; done")
	result := host.Slipway("network", "trace", c.Pod("other").Status.PodIP, c.Namespace+"/far", "8080")
	if want := " Policies that apply and do not allow it: " + c.Namespace + "/from-near."; result.Code != 1 || !strings.Contains(result.Stdout, "Dropped by table ip slipway-policy, chain ") || !strings.Contains(result.Stdout, want) {
		t.Errorf("trace of the pod without permission, want %q: exit code %d\n%s%s", want, result.Code, result.Stdout, result.Stderr)
	}
}

func TestSecondHostPullsFromTheRegistryAndPushesBuilds(t *testing.T) {
	c, _ := kit.SharedHost(t)
	waitNodeReady(c, second)
	// Use a different image than other tests. A node that has pulled an image with a pull secret
	// pulls it again for pods without this secret.
	const built = "localhost/hosts-test:1"
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte("FROM "+kit.ToolsImage+"\nLABEL test=hosts\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag", built, dir)
	c.WaitFor("publication of an image", func(context.Context) error {
		if result := c.Slipway("images", "publish", built, c.Namespace+"/tools:v1"); result.Code != 0 {
			return fmt.Errorf("exit code %d: %s", result.Code, result.Stderr)
		}
		return nil
	})
	image := strings.TrimSpace(c.OC("get", "istag", "tools:v1", "-o", "jsonpath={.image.dockerImageReference}"))
	c.Apply(strings.ReplaceAll(server("pulled", second), kit.ToolsImage, image))
	pod := c.WaitPodRunning("pulled")
	if pod.Spec.NodeName != second || !strings.Contains(pod.Status.ContainerStatuses[0].ImageID, "sha256:") {
		t.Errorf("pod on %s with image %s", pod.Spec.NodeName, pod.Status.ContainerStatuses[0].ImageID)
	}
	checkBuild(t, c)
}

// checkBuild builds an image on the second host and pushes it to the registry on the master. The
// base image is the tag tools:v1.
func checkBuild(t *testing.T, c *kit.Cluster) {
	t.Helper()
	c.OC("create", "imagestream", "app")
	c.Apply(fmt.Sprintf(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {
		nodeSelector: {kubernetes.io/hostname: %s}, source: {dockerfile: "FROM tools:v1\nRUN echo built >/built\n"},
		strategy: {dockerStrategy: {from: {kind: ImageStreamTag, name: "tools:v1"}}}, output: {to: {kind: ImageStreamTag, name: "app:latest"}}}}`, second))
	if log := c.OC("start-build", "app", "--follow", "--wait"); !strings.Contains(log, "Push successful") {
		t.Errorf("the build printed\n%s", log)
	}
	if node := c.Pod("app-1-build").Spec.NodeName; node != second {
		t.Errorf("the build ran on %s", node)
	}
	image := strings.TrimSpace(c.OC("get", "istag", "app:latest", "-o", "jsonpath={.image.dockerImageReference}"))
	c.Apply(strings.ReplaceAll(server("built", c.NodeName()), kit.ToolsImage, image))
	c.WaitPodRunning("built")
	if got := c.Exec("built", "cat", "/built"); got != "built\n" {
		t.Errorf("the built image contains %q", got)
	}
}
