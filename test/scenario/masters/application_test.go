package masters

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// pods is the number of the application's pods, one per host.
const pods = 4

// application has a route, and one pod on each of the three masters and the node.
const application = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  replicas: 4
  selector: {matchLabels: {app: app}}
  template:
    metadata: {labels: {app: app}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: app}}}]
      containers:
      - name: server
        image: ` + kit.ToolsImage + `
        command: [sh, -c, "echo started && mkdir -p /tmp/www && echo I am here >/tmp/www/index.html && exec httpd -f -p 8080 -h /tmp/www"]
        readinessProbe:
          httpGet: {path: /, port: 8080}
          periodSeconds: 1
---
apiVersion: v1
kind: Service
metadata: {name: app}
spec:
  selector: {app: app}
  ports: [{port: 80, targetPort: 8080}]
---
{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: app}, spec: {host: app.example.com, to: {kind: Service, name: app}}}
`

// startApplication creates the application and waits until all its pods are ready.
func startApplication(c *kit.Cluster) {
	c.Apply(application)
	c.WaitFor("pods of the application on four hosts", func(context.Context) error {
		ready, err := c.TryOC("get", "deployment", "app", "-o", "jsonpath={.status.readyReplicas}")
		if err == nil && ready != strconv.Itoa(pods) {
			err = fmt.Errorf("ready are %q", ready)
		}
		return err
	})
}

// waitApplication waits until the routers on the given hosts serve the application.
func waitApplication(hosts ...*kit.Cluster) {
	for _, host := range hosts {
		waitRoute(host, "app.example.com")
	}
}

// waitRoute waits until a host's router serves the application under the given host name. It
// requests the page once for each pod, because the router balances requests between the pods.
func waitRoute(host *kit.Cluster, name string) {
	host.WaitFor("responses of the route "+name, func(ctx context.Context) error {
		for range pods {
			if _, err := host.Visit(ctx, "http://"+name+"/", "I am here"); err != nil {
				return err
			}
		}
		return nil
	})
}

// loseMasters kills the leader's host, and then the host of another master. The remaining masters
// must continue to work, and the remaining routers must serve the application.
func loseMasters(t *testing.T, masters map[string]*kit.Cluster, node *kit.Cluster, lb *balancer, w *writers) {
	leader := waitLeader(masters["first"].For(t), "")
	names := slices.Sorted(maps.Keys(masters))
	follower := names[slices.IndexFunc(names, func(name string) bool { return name != leader })]
	for _, name := range []string{leader, follower} {
		t.Run(name, func(t *testing.T) {
			lost, remaining := masters[name].For(t), map[string]*kit.Cluster{}
			for other, host := range masters {
				if other != name {
					remaining[other] = host.For(t)
				}
			}
			source := lb.source(lost, name)
			lost.KillEverything()
			waitApplication(append(slices.Collect(maps.Values(remaining)), node.For(t))...)
			for other, host := range remaining {
				w.waitWrites(host, other)
				waitControllers(host, "without-"+name+"-on-"+other)
			}
			for _, host := range remaining {
				checkAudit(t, host, remaining, name)
			}
			lb.waitMaster(lost, source, name, false)
			w.waitWrites(lost, "balancer")
			lost.MustSlipway("up")
			lost.WaitReady()
			w.waitWrites(lost, name)
			lb.waitMaster(lost, source, name, true)
			checkAudit(t, lost, masters)
		})
	}
}
