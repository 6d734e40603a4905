package hosts

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// third is the name of the third host's node.
const third = "third"

// deployment runs three pods, on different hosts if possible.
const deployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      terminationGracePeriodSeconds: 1
      topologySpreadConstraints:
      - {maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {app: web}}}
      containers:
      - {name: web, image: localhost/slipway-tools:current, command: [sleep, infinity]}
`

// waitPodsElsewhere waits until the deployment has three ready pods, none of which is on the given
// node.
func waitPodsElsewhere(c *kit.Cluster, node string) {
	c.WaitFor("pods on nodes other than "+node, func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == node {
				return fmt.Errorf("pod %s is on %s", pod.Name, node)
			}
			if len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready {
				ready++
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d pods are ready", ready)
		}
		return nil
	})
}

// request sends a request to the API server with a client certificate, and returns the status code.
func request(t *testing.T, c *kit.Cluster, file, path string) int {
	t.Helper()
	cert, err := tls.LoadX509KeyPair(file, file)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{
		DialContext: c.Dial, DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true},
	}}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.APIURL()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// lostSoon makes pods tolerate an unreachable node for one second instead of five minutes.
const lostSoon = `      tolerations: [{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute, tolerationSeconds: 1}]
`

// owner is a pod that uses the only disk and prefers the third host.
const owner = `
---
apiVersion: v1
kind: PersistentVolume
metadata: {name: disk}
spec:
  capacity: {storage: 1Mi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  flexVolume: {driver: ` + kit.DiskDriver + `}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: disk}
spec: {accessModes: [ReadWriteOnce], storageClassName: "", volumeName: disk, resources: {requests: {storage: 1Mi}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: owner}
spec:
  selector: {matchLabels: {app: owner}}
  template:
    metadata: {labels: {app: owner}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [third]}]}}]
` + lostSoon + `      containers:
      - {name: owner, image: ` + kit.ToolsImage + `, command: [sleep, infinity], volumeMounts: [{name: disk, mountPath: /disk}]}
      volumes: [{name: disk, persistentVolumeClaim: {claimName: disk}}]
`

// TestLostHostIsReplacedAndLeaves loses a host, waits until its pods and volume are on other hosts,
// joins the host again, and finally removes it.
func TestLostHostIsReplacedAndLeaves(t *testing.T) {
	c, other := kit.SharedHost(t)
	waitNodeReady(c, second)
	lost := c.Join(third, kit.Options{})
	waitNodeReady(c, third)
	loseHost(t, c, lost, kit.NewDisk(t, c, other, lost))

	c.OC("delete", "node", third)
	c.WaitFor("rejection of the host", func(context.Context) error {
		if code := request(t, c, lost.Path("pki", "kubelet", "kubelet-client-current.pem"), "/api/v1/nodes/"+third); code != http.StatusUnauthorized {
			return fmt.Errorf("it gets %d", code)
		}
		return nil
	})
	lost.MustSlipway("leave", "--force")
	c.OC("delete", "deployment/web", "deployment/owner", "pvc/disk", "pv/disk")

	again := c.Join(third, kit.Options{})
	waitNodeReady(c, third)
	removeHost(t, c, again)
}

// loseHost kills the third host, whose pods include the owner of the disk. The owner must move to
// another host after an administrator adds the taint for lost nodes.
func loseHost(t *testing.T, c *kit.Cluster, host *kit.Host, disk *kit.Disk) {
	t.Helper()
	c.Apply(strings.Replace(deployment, "      containers:\n", lostSoon+"      containers:\n", 1) + owner)
	var lost []string
	c.WaitFor("ready pods, one of them on the third host", func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		lost = nil
		for _, pod := range pods.Items {
			if len(pod.Status.ContainerStatuses) == 0 || !pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("pod %s is not ready", pod.Name)
			}
			if pod.Spec.NodeName == third {
				lost = append(lost, pod.Name)
			}
		}
		if len(lost) == 0 {
			return fmt.Errorf("none of %d pods is on the third host", len(pods.Items))
		}
		return nil
	})

	c.OnlyPod("app=owner")
	if holder := disk.Holder(t); holder != third {
		t.Fatalf("the disk is attached to %q, want %q", holder, third)
	}

	host.KillEverything()
	c.WaitFor("three ready pods on the other hosts", func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web"})
		if err != nil {
			return err
		}
		ready := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName != third && len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].Ready {
				ready++
			}
		}
		if ready != 3 {
			return fmt.Errorf("%d pods are ready", ready)
		}
		return nil
	})
	// The lost host's pods are marked for deletion, but remain until an administrator reports the
	// host as lost.
	for _, name := range lost {
		if pod := c.Pod(name); pod.DeletionTimestamp == nil {
			t.Errorf("pod %s of the lost host is not being deleted", name)
		}
	}
	if holder := disk.Holder(t); holder != third {
		t.Errorf("before an administrator reports that the host is lost, the disk is attached to %q", holder)
	}
	c.OC("adm", "taint", "nodes", third, "node.kubernetes.io/out-of-service=lost:NoExecute")
	waitPodsElsewhere(c, third)
	c.WaitFor("pod with the disk on another host", func(context.Context) error {
		if holder := disk.Holder(t); holder == third || holder == "" {
			return fmt.Errorf("the disk is attached to %q", holder)
		}
		return nil
	})
	c.OnlyPod("app=owner")
	disk.Check(t)
}

// removeHost makes a host leave the cluster, and checks that none of its objects remain.
func removeHost(t *testing.T, c *kit.Cluster, host *kit.Host) {
	t.Helper()
	subnet := c.OC("get", "node", third, "-o", "jsonpath={.spec.podCIDR}")
	c.Apply(deployment)
	c.WaitFor("a pod on the third host", func(ctx context.Context) error {
		pods, err := c.Client.CoreV1().Pods(c.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "app=web", FieldSelector: "spec.nodeName=" + third})
		if err == nil && len(pods.Items) == 0 {
			err = fmt.Errorf("no pod runs on the third host")
		}
		return err
	})

	// Copy the host's certificates, as an attacker could do.
	stolen := map[string]string{}
	for path, probe := range map[string]string{
		"pki/kubelet/kubelet-client-current.pem": "/api/v1/nodes/" + third,
		"pki/node/kube-proxy-current.pem":        "/api/v1/services",
	} {
		content, err := os.ReadFile(host.Path(path))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "stolen.pem")
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		stolen[file] = probe
		if code := request(t, c, file, probe); code != http.StatusOK {
			t.Errorf("before the removal, %s gets %d", path, code)
		}
	}

	host.MustSlipway("leave")
	c.WaitFor("deletion of the node", func(ctx context.Context) error {
		_, err := c.Client.CoreV1().Nodes().Get(ctx, third, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("the node exists: %w", err)
	})
	waitPodsElsewhere(c, third)
	for file, probe := range stolen {
		c.WaitFor("rejection of a former certificate", func(context.Context) error {
			if code := request(t, c, file, probe); code != http.StatusUnauthorized {
				return fmt.Errorf("%s returned %d", probe, code)
			}
			return nil
		})
	}
	c.WaitFor("no route to the former pods", func(context.Context) error {
		return c.Do(func() error {
			routes, err := exec.Command("ip", "-4", "route").Output()
			if err == nil && strings.Contains(string(routes), subnet) {
				err = fmt.Errorf("the routes are\n%s", routes)
			}
			return err
		})
	})
	if _, err := os.Stat(host.DataDir); !os.IsNotExist(err) {
		t.Errorf("the data directory exists: %v", err)
	}
}
