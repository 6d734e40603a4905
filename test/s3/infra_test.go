package s3

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/slipway-platform/slipway/test/kit"
)

// shop is an application with a route and with one pod on each of three hosts.
const shop = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  replicas: 3
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 10
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: shop}}}]
      containers:
      - name: web
        image: ` + kit.ToolsImage + `
        command: [sh, -c, "mkdir -p /tmp/www && echo open >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"]
        readinessProbe: {httpGet: {port: 8080}, periodSeconds: 1}
        lifecycle: {preStop: {sleep: {seconds: 3}}}
---
apiVersion: v1
kind: Service
metadata: {name: shop}
spec: {selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: route.openshift.io/v1
kind: Route
metadata: {name: shop}
spec: {host: shop.example.com, to: {kind: Service, name: shop}}
`

// visitors requests the shop's page from the hosts' routers until stop is called. stop returns the
// number of requests and the failures.
func visitors(hosts map[string]*kit.Cluster) (stop func() (count int64, failures []string)) {
	var visitors sync.WaitGroup
	var visits atomic.Int64
	var mu sync.Mutex
	ctx, cancel := context.WithCancel(context.Background())
	var failures []string
	for name, host := range hosts {
		visitors.Go(func() {
			for ctx.Err() == nil {
				visits.Add(1)
				// Let in-flight visits complete, so that stop does not cause failures.
				if _, err := host.Visit(context.Background(), "http://shop.example.com/", "open"); err != nil {
					mu.Lock()
					failures = append(failures, name+": "+err.Error())
					mu.Unlock()
				}
				// Limit the rate to fifty visits per second, to leave most of the CPU time to the
				// hosts.
				select {
				case <-ctx.Done():
				case <-time.After(20 * time.Millisecond):
				}
			}
		})
	}
	return func() (int64, []string) {
		cancel()
		visitors.Wait()
		return visits.Load(), failures
	}
}

// pushTools adds a layer to the image with small programs, and pushes the resulting image.
func (r *registry) pushTools(to string) error {
	image, err := remote.Image(r.tag("tools:v1"), r.options()...)
	if err != nil {
		return err
	}
	layer, err := random.Layer(1<<20, "application/vnd.docker.image.rootfs.diff.tar.gzip")
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err == nil {
		err = remote.Write(r.tag(to), image, r.options()...)
	}
	return err
}

// checkRollingUpgrade reboots three infrastructure nodes one after another, as administrators do
// (Cluster Administration 3.11, section 2.D). Each node restarts with a different version of the
// program. Meanwhile, the routers on the other nodes must serve the route without a failed request.
// The registry on one of the other nodes must accept an image and send it to a node.
func (r *registry) checkRollingUpgrade(t *testing.T, masters map[string]*kit.Cluster, program, version string) {
	names := []string{"first", "second", "third"}
	r.OC("label", "nodes", "first", "second", "third", "node-role.kubernetes.io/infra=true")
	r.MustSlipway("images", "publish", kit.ToolsImage, "default/tools:v1")
	r.Apply(shop)
	waitShop(t, masters, r.Cluster)
	r.rotateKey(masters)
	for i, name := range names {
		rebooting, remaining := masters[name].For(t), others(t, masters, name)
		next := remaining[names[(i+1)%len(names)]]
		stop := visitors(remaining)
		next.OC("adm", "drain", name, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=90s")
		rebooting.MustSlipway("down")
		var current string
		// On a busy machine, the registry can move again during a push. Clients repeat such a push.
		next.WaitFor("push while "+name+" is down", func(context.Context) error {
			current = waitRegistry(next, remaining, "")
			infra := &registry{Cluster: remaining[current], server: r.server, t: t, client: r.client, token: r.token}
			return infra.pushTools("tools:without-" + name)
		})
		pod := "without-" + name
		next.Apply(fmt.Sprintf(`{apiVersion: v1, kind: Pod, metadata: {name: %s}, spec: {nodeName: %s, terminationGracePeriodSeconds: 1, tolerations: [{operator: Exists}],
			containers: [{name: tools, image: "docker-registry.default.svc:5000/default/tools:%[1]s", imagePullPolicy: Always, command: [sleep, "10000"]}]}}`, pod, names[(i+1)%len(names)]))
		next.WaitPodRunning(pod)
		masters[name].Program, rebooting.Program = program, program
		rebooting.Up()
		if running := rebooting.Status().Version; running != version {
			t.Errorf("%s runs version %q, want %q", name, running, version)
		}
		versions := []string{version}
		if i < len(names)-1 {
			versions = append(versions, next.Status().Version)
		}
		next.WaitFor("versions in the status of the cluster", func(context.Context) error {
			status := next.Slipway("status", "--cluster").Stdout
			for _, v := range versions {
				if !strings.Contains(status, " "+v+" ") {
					return fmt.Errorf("%q is not in %s", v, status)
				}
			}
			return nil
		})
		count, failures := stop()
		if len(failures) > 0 {
			t.Errorf("%d of %d requests failed while %s rebooted, the first with: %s", len(failures), count, name, failures[0])
		}
		t.Logf("%s: %d requests, the registry was on %s", name, count, current)
		next.OC("delete", "pod", pod)
		next.OC("adm", "uncordon", name)
		waitShop(t, masters, next)
	}
}

// checkRollingRestart restarts the services on all hosts, one host after another, as `systemctl
// restart slipway` does. The pods continue to run. The route has a pod on each host, and the
// routers on the other hosts must serve it without a failed request.
func checkRollingRestart(t *testing.T, masters map[string]*kit.Cluster) {
	for name, restarting := range masters {
		restarting, remaining := restarting.For(t), others(t, masters, name)
		pods := restarting.OC("get", "pods", "-l", "app=shop", "-o", "name")
		stop := visitors(remaining)
		restarting.Signal("slipway", syscall.SIGTERM)
		restarting.WaitFor("end of the supervisor", func(context.Context) error {
			processes, err := restarting.Processes()
			if err == nil && slices.ContainsFunc(processes, func(p kit.Process) bool { return p.Program() == "slipway-supervisor" }) {
				err = errors.New("it is running")
			}
			return err
		})
		restarting.Up()
		waitShop(t, masters, restarting)
		count, failures := stop()
		if len(failures) > 0 {
			t.Errorf("%d of %d requests failed while %s restarted, the first with: %s", len(failures), count, name, failures[0])
		}
		if now := restarting.OC("get", "pods", "-l", "app=shop", "-o", "name"); now != pods {
			t.Errorf("the pods were %q, and after the restart of %s they are %q", pods, name, now)
		}
		t.Logf("%s: %d requests", name, count)
	}
}

// others returns all hosts except the named host.
func others(t *testing.T, hosts map[string]*kit.Cluster, name string) map[string]*kit.Cluster {
	remaining := map[string]*kit.Cluster{}
	for other, host := range hosts {
		if other != name {
			remaining[other] = host.For(t)
		}
	}
	return remaining
}

// waitShop waits until the shop has a pod on each host, and each host's router serves the route.
func waitShop(t *testing.T, hosts map[string]*kit.Cluster, c *kit.Cluster) {
	t.Helper()
	c.WaitFor("pods of the shop on three hosts", func(context.Context) error {
		got, err := c.TryOC("get", "deployment", "shop", "-o", "jsonpath={.status.readyReplicas}")
		if err == nil && got != "3" {
			err = fmt.Errorf("ready are %q", got)
		}
		return err
	})
	for _, host := range hosts {
		host.For(t).WaitVisit("http://shop.example.com/", "open")
	}
}

// rotateKey adds an encryption key for secrets as soon as all masters serve requests. It waits
// until all masters use the key.
func (r *registry) rotateKey(masters map[string]*kit.Cluster) {
	r.t.Helper()
	file := func(host *kit.Cluster) string {
		content, err := os.ReadFile(host.Path("pki", "encryption.yaml"))
		if err != nil {
			r.t.Fatal(err)
		}
		return string(content)
	}
	before := file(r.Cluster)
	r.WaitFor("rotation of the key", func(context.Context) error {
		if result := r.Slipway("encryption", "rotate"); result.Code != 0 {
			return errors.New(result.Stderr)
		}
		return nil
	})
	for name, host := range masters {
		host.For(r.t).WaitFor("new key on master "+name, func(context.Context) error {
			if content := file(host); content != file(r.Cluster) || strings.Index(content, "name: key2") > strings.Index(content, "name: key1") || content == before {
				return errors.New("the master has another file")
			}
			return nil
		})
	}
}
