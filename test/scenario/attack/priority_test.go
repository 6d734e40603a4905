package attack

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestTenantCannotUseSystemPriority(t *testing.T) {
	s := tenants(t)
	template := func(class string) string {
		return "spec: {priorityClassName: " + class + ", containers: [{name: main, image: none}]}"
	}
	pod := func(class string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: greedy}, " + template(class) + "}"
	}
	pods := kit.CorePath(s.evil, "pods")
	for _, class := range []string{"system-node-critical", "system-cluster-critical"} {
		s.mallory.MayNot("POST", pods, pod(class), class+" is for namespaces of the platform")
		mirror := "{apiVersion: v1, kind: Pod, metadata: {name: greedy, annotations: {kubernetes.io/config.mirror: forged}}, " + strings.Replace(template(class), "spec: {", "spec: {nodeName: none, ", 1) + "}"
		s.mallory.MayNot("POST", pods, mirror, "")
		s.Administrator().May("POST", kit.CorePath("kube-system", "pods")+"?", pod(class))
	}
	s.mallory.Refused("POST", pods, "{apiVersion: v1, kind: Pod, metadata: {name: greedy}, spec: {priority: 2000001000, containers: [{name: main, image: none}]}}", "priority", denied)
	s.mallory.MayNot("POST", kit.CorePath(s.evil, "resourcequotas"), "{apiVersion: v1, kind: ResourceQuota, metadata: {name: mine}, spec: {scopes: [PriorityClass], hard: {pods: 1}}}", "cannot create resource")
	s.mallory.MayNot("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", "{}", "cannot create resource")

	// Mallory must also not be able to create such pods through a controller.
	deployments := kit.GroupPath("apps", s.evil, "deployments")
	s.mallory.May("POST", deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: greedy}, spec: {selector: {matchLabels: {app: greedy}}, template: {metadata: {labels: {app: greedy}}, "+
		template("system-node-critical")+"}}}")
	s.waitReplicaFailure(s.mallory, deployments+"/greedy", "system-node-critical is for namespaces of the platform")
}

// waitReplicaFailure waits until a deployment reports the reason why its pods are rejected.
func (s *stage) waitReplicaFailure(user *kit.User, path, reason string) {
	s.WaitFor("the refusal of the pods of "+path, func(context.Context) error {
		response, err := user.Try("GET", path, "")
		if err == nil && (!strings.Contains(response, "ReplicaFailure") || !strings.Contains(response, reason)) {
			err = fmt.Errorf("the status of the deployment is %s", response)
		}
		return err
	})
}

// A running pod whose anti-affinity excludes all pods would keep other projects' pods off its node.
func TestPodCannotExcludePodsOfOtherProjects(t *testing.T) {
	s := tenants(t)
	pods := kit.CorePath(s.evil, "pods")
	pod := func(term string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: alone}, spec: {nodeName: none, affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [" +
			"{topologyKey: kubernetes.io/hostname, labelSelector: {}" + term + "}]}}, containers: [{name: main, image: none}]}}"
	}
	s.mallory.May("POST", pods+"?", pod(""))
	for _, term := range []string{", namespaceSelector: {}", ", namespaces: [" + s.shop + "]"} {
		s.mallory.MayNot("POST", pods, pod(term), "it selects pods of other projects")
	}
	s.Administrator().May("POST", kit.CorePath(s.evil, "resourcequotas"), "{apiVersion: v1, kind: ResourceQuota, metadata: {name: affinity}, spec: {scopes: [CrossNamespacePodAffinity], hard: {pods: 1}}}")
	s.WaitFor("the quota", func(context.Context) error {
		_, err := s.mallory.Try("POST", pods+"?", pod(", namespaceSelector: {}"))
		return err
	})
}

// To set the variable, the kubelet would read a file on the pod's volume as root. It would never
// finish reading if the file is a pipe.
func TestKubeletReadsNoFilesOfContainers(t *testing.T) {
	s := tenants(t)
	s.mallory.Refused("POST", kit.CorePath(s.evil, "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: reader}, spec: {volumes: [{name: v, emptyDir: {}}], containers: ["+
		container("sleep infinity", "env: [{name: A, valueFrom: {fileKeyRef: {volumeName: v, path: pipe, key: A}}}]")+"]}}", "valueFrom", denied)
}
