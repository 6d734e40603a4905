package kubernetes

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// unscheduled keeps a pod pending. Quotas count pending pods like running pods.
const unscheduled = "schedulerName: none"

func resources(requests, limits string) string {
	return sleeper(fmt.Sprintf("resources: {requests: {%s}, limits: {%s}}", requests, limits))
}

// waitUsed waits until a quota's status contains the given usage of each resource, in the form
// key=value.
func waitUsed(c *kit.Cluster, quota string, uses ...string) {
	c.WaitFor(fmt.Sprintf("use %v of quota %s", uses, quota), func(ctx context.Context) error {
		description, err := c.TryOC("describe", "quota", quota)
		if err != nil {
			return err
		}
		for _, use := range uses {
			resource, amount, _ := strings.Cut(use, "=")
			exists := false
			for line := range strings.Lines(description) {
				fields := strings.Fields(line)
				exists = exists || len(fields) == 3 && fields[0] == resource && fields[1] == amount
			}
			if !exists {
				return fmt.Errorf("no %s in:\n%s", use, description)
			}
		}
		return nil
	})
}

func TestQuotaLimitsProject(t *testing.T) {
	c := kit.Shared(t)
	// Wait for the project's own objects before creating the quota, because Kubernetes can miss
	// objects that are created at the same time as the quota. Each service account has two secrets.
	// The CA certificates are in ConfigMaps.
	c.WaitFor("6 secrets and 2 ConfigMaps of the project", func(context.Context) error {
		list, err := c.TryOC("get", "secrets,configmaps", "-o", "name")
		if err == nil && (strings.Count(list, "secret/") != 6 || strings.Count(list, "configmap/") != 2) {
			err = fmt.Errorf("it has %s", list)
		}
		return err
	})
	c.Apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: objects}
spec:
  hard: {pods: 4, configmaps: 3, secrets: 7, services: 1, replicationcontrollers: 1, persistentvolumeclaims: 2, resourcequotas: 4,
    requests.storage: 3Gi, gold.storageclass.storage.k8s.io/requests.storage: 1Gi, gold.storageclass.storage.k8s.io/persistentvolumeclaims: 1,
    bronze.storageclass.storage.k8s.io/persistentvolumeclaims: 0}
`)
	waitUsed(c, "objects", "configmaps=2", "pods=0", "secrets=6")
	c.Apply(`
apiVersion: v1
kind: ResourceQuota
metadata: {name: compute}
spec:
  hard: {requests.cpu: 1, requests.memory: 1Gi, requests.ephemeral-storage: 2Gi, limits.cpu: 2, limits.memory: 2Gi, limits.ephemeral-storage: 4Gi,
    requests.nvidia.com/gpu: 1}
`)
	c.OC("create", "quota", "counts", "--hard=count/deployments.apps=1,count/jobs.batch=0")
	waitUsed(c, "objects", "resourcequotas=3")
	waitUsed(c, "counts", "count/deployments.apps=0")
	waitUsed(c, "compute", "requests.cpu=0")

	const much = "cpu: 700m, memory: 1Mi, ephemeral-storage: 1Mi"
	const small = "cpu: 400m, memory: 100Mi, ephemeral-storage: 1Gi"
	if err := create(t, c, pod("one", resources(small+", nvidia.com/gpu: 1", small+", nvidia.com/gpu: 1"), unscheduled)); err != nil {
		t.Fatal(err)
	}
	waitUsed(c, "compute", "requests.cpu=400m", "limits.memory=100Mi", "requests.ephemeral-storage=1Gi", "requests.nvidia.com/gpu=1")
	waitUsed(c, "objects", "pods=1")
	claim := func(name, class, size string) string {
		return fmt.Sprintf("{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], "+
			"storageClassName: %s, resources: {requests: {storage: %s}}}}", name, class, size)
	}
	for _, manifest := range []string{
		claim("first", "gold", "1Gi"),
		"{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}",
		"{apiVersion: v1, kind: Secret, metadata: {name: first}}",
	} {
		if err := create(t, c, manifest); err != nil {
			t.Error(err)
		}
	}
	c.OC("create", "deployment", "first", "--image", "none", "--replicas", "0")
	for _, tt := range []struct{ manifest, message string }{
		{pod("cpu", resources(much, much), unscheduled), "exceeded quota: compute, requested: requests.cpu=700m, used: requests.cpu=400m, limited: requests.cpu=1"},
		{
			pod("gpu", resources(small+", nvidia.com/gpu: 1", small+", nvidia.com/gpu: 1"), unscheduled),
			`pods "gpu" is forbidden: exceeded quota: compute, requested: requests.nvidia.com/gpu=1, used: requests.nvidia.com/gpu=1, limited: requests.nvidia.com/gpu=1`,
		},
		{pod("silent", sleeper(), unscheduled), "must specify limits.cpu for: main; limits.memory for: main; requests.cpu for: main; requests.memory for: main"},
		{"{apiVersion: v1, kind: ConfigMap, metadata: {name: second}}", "exceeded quota: objects, requested: configmaps=1, used: configmaps=3, limited: configmaps=3"},
		{"{apiVersion: v1, kind: Secret, metadata: {name: second}}", "requested: secrets=1, used: secrets=7"},
		{claim("second", "gold", "1Gi"), "gold.storageclass.storage.k8s.io/persistentvolumeclaims=1"},
		{claim("big", "silver", "3Gi"), "requested: requests.storage=3Gi, used: requests.storage=1Gi"},
		{claim("bronze", "bronze", "1Gi"), "bronze.storageclass.storage.k8s.io/persistentvolumeclaims=0"},
		{"{apiVersion: batch/v1, kind: Job, metadata: {name: job}, spec: {template: {spec: {restartPolicy: Never, " + sleeper() + "}}}}", "count/jobs.batch=0"},
		{replicaController("rc-1", 0) + "---" + replicaController("rc-2", 0), "requested: replicationcontrollers=1"},
		{service("one", "selector: {app: one}") + service("two", "selector: {app: two}"), "requested: services=1"},
		{pod("more", resources(small+", nvidia.com/gpu: 1", small+", nvidia.com/gpu: 2"), unscheduled), "must be equal to nvidia.com/gpu limit"},
		{
			"{apiVersion: v1, kind: ResourceQuota, metadata: {name: fourth}}\n---\n{apiVersion: v1, kind: ResourceQuota, metadata: {name: fifth}}",
			"requested: resourcequotas=1, used: resourcequotas=4",
		},
	} {
		expectRejected(t, c, tt.manifest, tt.message)
	}
	if _, err := c.TryOC("create", "deployment", "second", "--image", "none"); err == nil || !strings.Contains(err.Error(), "count/deployments.apps=1") {
		t.Errorf("second deployment: %v", err)
	}
	expect(t, c.OC("get", "quota"), "objects", "compute", "pods: 1/4")
	// Quotas must no longer count completed pods and deleted objects.
	c.OC("patch", "pod", "one", "--subresource", "status", "-p", `{"status":{"phase":"Succeeded"}}`)
	waitUsed(c, "compute", "requests.cpu=0")
	waitUsed(c, "objects", "pods=0")
	c.OC("delete", "secret", "first")
	waitUsed(c, "objects", "secrets=6")
}

// replicaController returns a manifest for a ReplicationController.
func replicaController(name string, count int) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: ReplicationController
metadata: {name: %s}
spec:
  replicas: %d
  selector: {app: %[1]s}
  template:
    metadata: {labels: {app: %[1]s}}
    spec: {terminationGracePeriodSeconds: 1, %[3]s}
`, name, count, sleeper())
}

func TestQuotaScopesSelectPods(t *testing.T) {
	c := kit.Shared(t)
	scopes := []string{"Terminating", "NotTerminating", "BestEffort", "NotBestEffort"}
	for _, scope := range scopes {
		c.Apply(fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: %s}, spec: {hard: {pods: 2}, scopes: [%s]}}", strings.ToLower(scope), scope))
	}
	for _, scope := range scopes {
		waitUsed(c, strings.ToLower(scope), "pods=0")
	}
	makePod(t, c, pod("a", sleeper(), unscheduled))
	makePod(t, c, pod("b", sleeper("resources: {requests: {cpu: 1m}}"), unscheduled, "activeDeadlineSeconds: 3600"))
	makePod(t, c, pod("c", sleeper("resources: {requests: {cpu: 1m}}"), unscheduled))
	for quota, use := range map[string]string{"terminating": "pods=1", "notterminating": "pods=2", "besteffort": "pods=1", "notbesteffort": "pods=2"} {
		waitUsed(c, quota, use)
	}
	expectRejected(t, c, pod("d", sleeper("resources: {requests: {cpu: 1m}}"), unscheduled), "exceeded quota", "limited: pods=2")
	// Quotas must no longer count a completed pod.
	c.OC("patch", "pod", "c", "--subresource", "status", "-p", `{"status":{"phase":"Failed"}}`)
	waitUsed(c, "notbesteffort", "pods=1")
	if err := create(t, c, pod("e", sleeper(), unscheduled, "activeDeadlineSeconds: 3600")); err != nil {
		t.Error(err)
	}
	quota := "{apiVersion: v1, kind: ResourceQuota, metadata: {name: wrong}, spec: {hard: {%s: 1}, scopes: [%s]}}"
	expectRejected(t, c, fmt.Sprintf(quota, "requests.cpu", "BestEffort"), "unsupported scope applied to resource")
	expectRejected(t, c, fmt.Sprintf(quota, "services", "Terminating"), "unsupported scope applied to resource")
	for _, resource := range []string{"memory", "requests.memory", "limits.memory", "cpu", "requests.cpu", "limits.cpu"} {
		for _, scope := range []string{"Terminating", "NotTerminating", "NotBestEffort"} {
			if _, err := c.TryOC("create", "quota", "allowed", "--hard="+resource+"=1", "--scopes="+scope, "--dry-run=server"); err != nil {
				t.Errorf("scope %s for %s: %v", scope, resource, err)
			}
		}
	}
}

func TestLimitRangeSetsAndChecksResources(t *testing.T) {
	c := kit.Shared(t)
	c.Apply(`
apiVersion: v1
kind: LimitRange
metadata: {name: limits}
spec:
  limits:
  - {type: Container, min: {cpu: 10m, memory: 1Mi}, max: {cpu: 500m, memory: 64Mi}, default: {cpu: 100m, memory: 32Mi}, defaultRequest: {cpu: 20m, memory: 8Mi}}
  - {type: Pod, max: {cpu: 800m, memory: 100Mi}}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: requests}
spec: {hard: {cpu: 1, memory: 1Gi, ephemeral-storage: 1Gi}}
`)
	waitUsed(c, "requests", "cpu=0")
	if err := create(t, c, pod("plain", sleeper("resources: {requests: {ephemeral-storage: 1Mi}}"), unscheduled, "initContainers: [{name: init, image: none}]")); err != nil {
		t.Fatal(err)
	}
	// Without a prefix, these keys mean requests.
	waitUsed(c, "requests", "cpu=20m", "memory=8Mi", "ephemeral-storage=1Mi")
	plain := c.Pod("plain").Spec
	for _, container := range append(plain.InitContainers, plain.Containers...) {
		got := container.Resources
		if got.Limits.Cpu().String() != "100m" || got.Limits.Memory().String() != "32Mi" || got.Requests.Cpu().String() != "20m" || got.Requests.Memory().String() != "8Mi" {
			t.Errorf("container %s has %v", container.Name, got)
		}
	}
	large := "{name: %s, image: none, resources: {limits: {cpu: %s}}}"
	expectRejected(t, c, pod("a", resources("cpu: 1m", "cpu: 100m"), unscheduled), "minimum cpu usage per Container is 10m")
	expectRejected(t, c, pod("b", resources("memory: 8Mi", "memory: 65Mi"), unscheduled), "maximum memory usage per Container is 64Mi")
	expectRejected(t, c, pod("c", sleeper(), unscheduled, "initContainers: ["+fmt.Sprintf(large, "init", "600m")+"]"), "maximum cpu usage per Container is 500m")
	two := fmt.Sprintf("containers: ["+large+", "+large+"]", "one", "500m", "two", "400m")
	expectRejected(t, c, pod("d", two, unscheduled), "maximum cpu usage per Pod is 800m")
}
