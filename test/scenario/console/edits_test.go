package console

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestUserEditsWorkloadsAndTakesSnapshotInForms(t *testing.T) {
	s := siteOf(t, kit.SharedIn(t, "bakery"))
	s.application()
	s.Apply(strings.ReplaceAll(edited, "IMAGE", kit.ToolsImage))
	// Wait for the class, which is created shortly after the cluster is ready.
	s.WaitFor("class of snapshots", func(context.Context) error {
		_, err := s.TryOC("get", "volumesnapshotclass", "slipway-local")
		return err
	})
	s.OC("wait", "pod/user", "--for=condition=Ready", "--timeout=2m")
	s.OC("rollout", "status", "dc/shop", "--timeout=2m")
	s.play("edits.mjs", s.Namespace)

	s.OC("rollout", "status", "deployment/front", "--timeout=2m")
	const container = "{.spec.template.spec.containers[0]."
	for path, want := range map[string]string{
		container + "readinessProbe.httpGet.path}{.spec.template.spec.containers[0].readinessProbe.periodSeconds}": "/etc/hostname2",
		container + "livenessProbe.tcpSocket.port}":                                                                "8080",
		container + "startupProbe.exec.command}":                                                                   `["test","-d","/"]`,
		container + "resources}":                                                                                   `{"limits":{"memory":"64Mi"},"requests":{"cpu":"10m","memory":"32Mi"}}`,
		container + "lifecycle.postStart.exec.command}":                                                            `["true"]`,
		container + "volumeMounts[0].mountPath} {.spec.template.spec.volumes[0].configMap.name}":                   "/certificates kube-root-ca.crt",
		"{.spec.strategy.rollingUpdate}":                                                                           `{"maxSurge":2,"maxUnavailable":0}`,
	} {
		if got := s.OC("get", "deployment/front", "-o", "jsonpath="+path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	s.OC("rollout", "status", "dc/shop", "--timeout=3m")
	log := s.OC("logs", "shop-2-deploy")
	for _, want := range []string{"the hook ran", "pre: Success", "post: Success"} {
		if !strings.Contains(log, want) {
			t.Errorf("the log of the deployment does not contain %q:\n%s", want, log)
		}
	}
	if got := s.OC("get", "is/released", "-o", "jsonpath={.spec.tags[*].name}"); got != "now" {
		t.Errorf("the image stream has the tags %q", got)
	}
	if got := s.OC("get", "pvc/restored", "-o", "jsonpath={.spec.dataSource.kind} {.spec.dataSource.name}"); got != "VolumeSnapshot kept" {
		t.Errorf("the data source of the claim is %q", got)
	}
	// Delete the claim first. Otherwise, the snapshot could not be deleted until it has been
	// restored to the claim, which does not happen because no pod uses the claim.
	s.OC("delete", "pvc/restored", "--timeout=1m")
	s.OC("delete", "volumesnapshot/kept", "--timeout=1m")
}

// edited contains a DeploymentConfig, and a claim whose volume exists.
const edited = `
apiVersion: image.openshift.io/v1
kind: ImageStream
metadata: {name: released}
---
apiVersion: apps.openshift.io/v1
kind: DeploymentConfig
metadata: {name: shop}
spec:
  replicas: 1
  selector: {app: shop}
  template:
    metadata: {labels: {app: shop}}
    spec:
      terminationGracePeriodSeconds: 0
      containers: [{name: shop, image: IMAGE, command: [sleep, "1000000"]}]
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
---
apiVersion: v1
kind: Pod
metadata: {name: user}
spec:
  terminationGracePeriodSeconds: 0
  containers: [{name: user, image: IMAGE, command: [sleep, "1000000"], volumeMounts: [{name: data, mountPath: /data}]}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`
