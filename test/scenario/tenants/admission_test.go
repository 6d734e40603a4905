package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// admitted sends a request for a pod as a dry run, and returns the pod that the API server would
// store.
func admitted(t *testing.T, user *kit.User, namespace, spec string) *corev1.Pod {
	t.Helper()
	response := user.May("POST", kit.CorePath(namespace, "pods")+"?", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+spec+"}}")
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(response), pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

const main = "containers: [{name: main, image: 'registry.example.com/shop:1', imagePullPolicy: Never}]"

func TestPodDefaultsFollowConfiguration(t *testing.T) {
	c := tenants(t)
	mia := c.User("mia")
	mia.RequestProject(c, "mia-shop")

	pod := admitted(t, mia, "mia-shop", main)
	if got := pod.Spec.Containers[0].ImagePullPolicy; got != corev1.PullAlways {
		t.Errorf("AlwaysPullImages leaves %q", got)
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		t.Errorf("a pod that runs forever has a deadline: %d", *pod.Spec.ActiveDeadlineSeconds)
	}
	if len(pod.Spec.Tolerations) != 0 {
		t.Errorf("DefaultTolerationSeconds is disabled, but adds %v", pod.Spec.Tolerations)
	}
	job := admitted(t, mia, "mia-shop", main+", restartPolicy: Never")
	if got := job.Spec.ActiveDeadlineSeconds; got == nil || *got != 3600 {
		t.Errorf("RunOnceDuration: the deadline is %v", got)
	}
	if got := admitted(t, mia, "mia-shop", main+", restartPolicy: OnFailure, activeDeadlineSeconds: 60").Spec.ActiveDeadlineSeconds; got == nil || *got != 60 {
		t.Errorf("RunOnceDuration: a shorter deadline becomes %v", got)
	}
	c.OC("annotate", "namespace", "mia-shop", "openshift.io/active-deadline-seconds-override=1800")
	c.WaitFor("the deadline of the project", func(ctx context.Context) error {
		if got := admitted(t, mia, "mia-shop", main+", restartPolicy: Never").Spec.ActiveDeadlineSeconds; got == nil || *got != 1800 {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})

	const limits = "resources: {limits: {cpu: 2, memory: 1Gi}}"
	limited := admitted(t, mia, "mia-shop", "initContainers: [{name: first, image: none, "+limits+"}], containers: [{name: main, image: none, "+limits+"}]")
	for _, container := range slices.Concat(limited.Spec.InitContainers, limited.Spec.Containers) {
		if requests := container.Resources.Requests; requests.Cpu().String() != "1" || requests.Memory().String() != "256Mi" {
			t.Errorf("ClusterResourceOverride: requests of %s are %v", container.Name, requests)
		}
		if container.ImagePullPolicy != corev1.PullAlways || container.SecurityContext == nil || container.SecurityContext.RunAsUser == nil {
			t.Errorf("AlwaysPullImages and the constraints leave %+v", container)
		}
	}

	pods := kit.CorePath("mia-shop", "pods")
	body := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + main + ", " + spec + "}}"
	}
	mia.MayNot("POST", pods, body("nodeName: somewhere"), "your role does not allow nodeName, because it lacks the permission to create pods/binding")
	mia.MayNot("POST", pods, body("nodeSelector: {kubernetes.io/hostname: somewhere}"), "your role does not allow the node selector label kubernetes.io/hostname")
	admitted(t, mia, "mia-shop", main+", nodeSelector: {disk: fast}")
}

func TestServicesAndEndpointsStayInAllowedNetworks(t *testing.T) {
	c := tenants(t)
	ned := c.User("ned")
	ned.RequestProject(c, "ned-shop")
	service := func(name, address string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {ports: [{port: 80}], externalIPs: [" + address + "]}}"
	}
	ned.May("POST", kit.CorePath("ned-shop", "services"), service("allowed", "192.0.2.7"))
	ned.MayNot("POST", kit.CorePath("ned-shop", "services"), service("excluded", "192.0.2.200"), "is not in networkConfig.externalIPNetworkCIDRs")
	ned.MayNot("POST", kit.CorePath("ned-shop", "services"), service("outside", "198.51.100.1"), "is not in networkConfig.externalIPNetworkCIDRs")
	ned.MayNot("PATCH", kit.CorePath("ned-shop", "services/allowed"), `{"spec":{"externalIPs":["198.51.100.1"]}}`, "is not in networkConfig.externalIPNetworkCIDRs")

	endpoints := func(name, address string) string {
		return "{apiVersion: v1, kind: Endpoints, metadata: {name: " + name + "}, subsets: [{addresses: [{ip: " + address + "}], ports: [{port: 80}]}]}"
	}
	ned.May("POST", kit.CorePath("ned-shop", "endpoints"), endpoints("outside", "203.0.113.5"))
	ned.MayNot("POST", kit.CorePath("ned-shop", "endpoints"), endpoints("pod", "10.128.0.9"), "endpoint address 10.128.0.9 is not allowed")
	ned.MayNot("POST", kit.CorePath("ned-shop", "endpoints"), endpoints("service", "172.30.0.1"), "endpoint address 172.30.0.1 is not allowed")
}

// This test uses the example in section 16.5 of the Cluster Administration guide.
func TestPodNodeSelectorIsMerged(t *testing.T) {
	c := tenants(t)
	admin := c.Administrator()
	admin.May("POST", "/api/v1/namespaces", `
apiVersion: v1
kind: Namespace
metadata:
  name: ns1
  annotations: {scheduler.alpha.kubernetes.io/node-selector: "env=test,infra=fedora", openshift.io/node-selector: ""}
`)
	t.Cleanup(func() { c.OC("delete", "namespace", "ns1", "--wait=false") })
	c.WaitFor("the accounts of ns1", func(context.Context) error {
		_, err := admin.Try("GET", kit.CorePath("ns1", "serviceaccounts/default"), "")
		return err
	})
	got := admitted(t, admin, "ns1", main+", nodeSelector: {env: test, os: fedora}").Spec.NodeSelector
	if diff := cmp.Diff(map[string]string{"env": "test", "infra": "fedora", "os": "fedora"}, got); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	for selector, reason := range map[string]string{
		"{env: production}": "pod node label selector conflicts with its namespace node label selector",
		"{disk: fast}":      "pod node label selector labels conflict with its namespace whitelist",
	} {
		admin.MayNot("POST", kit.CorePath("ns1", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+main+", nodeSelector: "+selector+"}}", reason)
	}
}

// This test uses the example in section 17.6 of the Cluster Administration guide.
func TestLimitedResourcesNeedQuota(t *testing.T) {
	c := tenants(t)
	pam := c.User("pam")
	pam.RequestProject(c, "pam-shop")
	claim := func(class string) string {
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: " + class +
			", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	}
	claims := kit.CorePath("pam-shop", "persistentvolumeclaims")
	pam.May("POST", claims+"?", claim("bronze"))
	pam.MayNot("POST", claims, claim("gold"), "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage")
	c.Administrator().May("POST", kit.CorePath("pam-shop", "resourcequotas"),
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: gold}, spec: {hard: {gold.storageclass.storage.k8s.io/requests.storage: 2Gi}}}")
	c.WaitFor("the quota to take effect", func(context.Context) error {
		_, err := pam.Try("POST", claims+"?", claim("gold"))
		return err
	})
}

func TestPodsUseOnlySecretsOfTheirAccount(t *testing.T) {
	c := tenants(t)
	lea := c.User("lea")
	lea.RequestProject(c, "lea-shop")
	for _, name := range []string{"listed", "other"} {
		lea.May("POST", kit.CorePath("lea-shop", "secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
	}
	lea.May("POST", kit.CorePath("lea-shop", "serviceaccounts"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, secrets: [{name: listed}]}")
	pod := func(secret string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: robot, " + main + ", volumes: [{name: v, secret: {secretName: " + secret + "}}]}}"
	}
	c.WaitFor("the account to take effect", func(context.Context) error {
		_, err := lea.Try("POST", kit.CorePath("lea-shop", "pods")+"?", pod("listed"))
		return err
	})
	lea.MayNot("POST", kit.CorePath("lea-shop", "pods"), pod("other"), "is not allowed because service account robot does not reference that secret")
}

// This test uses the examples in section 15.12 of the Cluster Administration guide.
func TestConstraintsAreGrantedToGroups(t *testing.T) {
	c := tenants(t)
	uma := c.User("uma", "hosts")
	uma.RequestProject(c, "uma-shop")
	const mounts = main + ", volumes: [{name: host, hostPath: {path: /etc}}]"
	uma.MayNot("POST", kit.CorePath("uma-shop", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+mounts+"}}", "hostPath")
	c.Apply(`
apiVersion: v1
kind: SecurityContextConstraints
metadata: {name: hostpath}
allowHostDirVolumePlugin: true
runAsUser: {type: MustRunAsRange}
seLinuxContext: {type: MustRunAs}
fsGroup: {type: MustRunAs}
supplementalGroups: {type: RunAsAny}
groups: [hosts]
`)
	t.Cleanup(func() {
		c.OC("delete", "scc", "hostpath")
		c.OC("adm", "policy", "remove-scc-from-group", "anyuid", "hosts")
	})
	c.WaitFor("the constraint to take effect", func(context.Context) error {
		_, err := uma.Try("POST", kit.CorePath("uma-shop", "pods")+"?", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+mounts+"}}")
		return err
	})
	if got := admitted(t, uma, "uma-shop", mounts).Annotations["openshift.io/scc"]; got != "hostpath" {
		t.Errorf("a pod with a hostPath volume has the constraint %q", got)
	}
	c.OC("adm", "policy", "add-scc-to-group", "anyuid", "hosts")
	c.WaitFor("permission for any user ID", func(context.Context) error {
		pod := admitted(t, uma, "uma-shop", main)
		if got := pod.Annotations["openshift.io/scc"]; got != "anyuid" || pod.Spec.Containers[0].SecurityContext.RunAsUser != nil {
			return fmt.Errorf("the constraint is %q, the user %v", got, pod.Spec.Containers[0].SecurityContext.RunAsUser)
		}
		return nil
	})
}
