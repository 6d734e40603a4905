package hosts

import (
	"context"
	"fmt"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// keeper is a Deployment that prefers a node. Its pods serve a page on a volume of the default
// storage class. The first pod writes its name to the page.
const keeper = `
{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: page}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}
---
{apiVersion: v1, kind: Service, metadata: {name: keeper}, spec: {selector: {app: keeper}, ports: [{port: 80, targetPort: 8080}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: keeper}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: keeper}}
  template:
    metadata: {labels: {app: keeper}}
    spec:
      terminationGracePeriodSeconds: 1
      affinity:
        nodeAffinity:
          preferredDuringSchedulingIgnoredDuringExecution: [{weight: 100, preference: {matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [%s]}]}}]
      containers:
      - name: server
        image: ` + kit.ToolsImage + `
        command: [sh, -c, "cd /page && { test -e index.html || hostname >index.html; } && exec httpd -f -p 8080"]
        readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
        volumeMounts: [{name: page, mountPath: /page}]
      volumes: [{name: page, persistentVolumeClaim: {claimName: page}}]
---
`

// TestJoinedHostKeepsVolumesAndWakesServices idles a service whose pod has a volume on the second
// host, and then connects to the service from another pod on that host. The connection must start a
// new pod. Because of the volume, the pod must run on the second host, although the Deployment now
// prefers the master.
func TestJoinedHostKeepsVolumesAndWakesServices(t *testing.T) {
	c, _ := kit.SharedHost(t)
	waitOutput := func(want string, get ...string) {
		t.Helper()
		c.WaitFor(fmt.Sprintf("%q in oc get %q", want, get), func(context.Context) error {
			got, err := c.TryOC(append([]string{"get"}, get...)...)
			if err == nil && got != want {
				err = fmt.Errorf("it is %q", got)
			}
			return err
		})
	}
	waitOutput("true", "node", second, "-o", `jsonpath={.metadata.labels.slipway\.openshift\.io/local-storage}`)
	c.Apply(fmt.Sprintf(keeper, second) + server("client", second))
	before := c.OnlyPod("app=keeper")
	c.WaitPodRunning("client")
	url := "http://keeper." + c.Namespace + ".svc/"
	c.WaitFetch("client", url, before.Name)

	c.OC("idle", "keeper")
	waitOutput("0 ", "deployment", "keeper", "-o", "jsonpath={.spec.replicas} {.status.replicas}")
	c.Apply(fmt.Sprintf(keeper, c.NodeName()))
	c.WaitFetch("client", url, before.Name)
	after := c.OnlyPod("app=keeper")
	if before.Spec.NodeName != second || after.Spec.NodeName != second || after.UID == before.UID {
		t.Errorf("the pods %s on %s and %s on %s have the volume", before.UID, before.Spec.NodeName, after.UID, after.Spec.NodeName)
	}
}
