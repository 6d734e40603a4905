package hosts

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// driverScript is a FlexVolume driver whose volumes contain the name of the host's node.
const driverScript = `#!/bin/sh
case $1 in
init) echo '{"status": "Success", "capabilities": {"attach": false}}' ;;
mount) mkdir -p $2 && mount -t tmpfs tmpfs $2 && echo "volume on NODE" >$2/page && echo '{"status": "Success"}' ;;
unmount) umount $2 && echo '{"status": "Success"}' ;;
*) echo '{"status": "Not supported"}' ;;
esac
`

// driverDaemonSet copies the driver to each host's plugin directory. A ConfigMap contains the
// directories by node, because each of the test's hosts has a different directory.
const driverDaemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: driver}
spec:
  selector: {matchLabels: {app: driver}}
  template:
    metadata: {labels: {app: driver}}
    spec:
      terminationGracePeriodSeconds: 1
      volumes:
      - {name: host, hostPath: {path: /tmp}}
      - {name: driver, configMap: {name: driver}}
      containers:
      - name: deploy
        image: %s
        securityContext: {privileged: true}
        env: [{name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
        volumeMounts: [{name: host, mountPath: /tmp}, {name: driver, mountPath: /driver}]
        command:
        - sh
        - -c
        - |
          dir=$(cat /driver/$NODE)/example.com~late && mkdir -p $dir
          sed "s/NODE/$NODE/" /driver/script >$dir/.late && chmod 755 $dir/.late && mv $dir/.late $dir/late
          exec sleep infinity
`

// agentDaemonSet runs on the nodes that have the guide's label for hosts that collect logs.
const agentDaemonSet = `
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: fluentd}
spec:
  selector: {matchLabels: {app: fluentd}}
  template:
    metadata: {labels: {app: fluentd}}
    spec:
      nodeSelector: {logging-infra-fluentd: "true"}
      terminationGracePeriodSeconds: 1
      containers: [{name: fluentd, image: %s, command: [sleep, infinity]}]
`

// volumePod returns a pod on a node, with a volume that uses the driver.
func volumePod(node string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: on-%[1]s}
spec:
  nodeName: %[1]s
  terminationGracePeriodSeconds: 1
  containers: [{name: main, image: %[2]s, command: [sleep, infinity], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, flexVolume: {driver: example.com/late}}]
---
`, node, kit.ToolsImage)
}

// TestDriverOfDaemonSetReachesHostsThatJoinLater checks a promise of the discovery document: a
// DaemonSet that installs a driver on each host also installs it on hosts that join later.
func TestDriverOfDaemonSetReachesHostsThatJoinLater(t *testing.T) {
	c, host := kit.SharedHost(t)
	late := c.NewHost("late", kit.Options{})
	waitNodeReady(c, second)
	c.OC("adm", "policy", "add-scc-to-user", "privileged", "-z", "default")
	c.OC("create", "configmap", "driver", "--from-literal=script="+driverScript,
		"--from-literal="+c.NodeName()+"="+c.VolumePluginDir, "--from-literal="+second+"="+host.VolumePluginDir, "--from-literal=late="+late.VolumePluginDir)
	c.Apply(fmt.Sprintf(driverDaemonSet, kit.ToolsImage))
	c.OC("rollout", "status", "daemonset/driver", "--timeout=2m")
	c.Apply(fmt.Sprintf(agentDaemonSet, kit.ToolsImage))

	late.JoinWith(c.APIURL(), c.Token())
	waitNodeReady(c, "late")
	nodes := []string{c.NodeName(), second, "late"}
	for _, node := range nodes {
		c.Apply(volumePod(node))
	}
	for _, node := range nodes {
		c.WaitPodRunning("on-" + node)
		if got, want := c.Exec("on-"+node, "cat", "/data/page"), "volume on "+node+"\n"; got != want {
			t.Errorf("the volume of node %s contains %q, want %q", node, got, want)
		}
	}
	c.OC("label", "node", "late", "logging-infra-fluentd=true")
	c.WaitFor("pod for the label of the new host", func(context.Context) error {
		pods, err := c.TryOC("get", "pods", "-l", "app=fluentd", "-o", `jsonpath={range .items[*]}{.spec.nodeName} {.status.phase}{"\n"}{end}`)
		if err == nil && strings.TrimSpace(pods) != "late Running" {
			err = fmt.Errorf("they are %q", pods)
		}
		return err
	})
	for _, node := range nodes {
		c.OC("delete", "pod", "on-"+node)
	}
}
