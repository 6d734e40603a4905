package tenants

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

// made is what the server makes of a pod, which is not kept.
func (p *person) made(namespace, spec string) *corev1.Pod {
	p.t.Helper()
	answer := p.may("POST", core(namespace, "pods")+"?", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+spec+"}}")
	pod := &corev1.Pod{}
	if err := json.Unmarshal([]byte(answer), pod); err != nil {
		p.t.Fatal(err)
	}
	return pod
}

const main = "containers: [{name: main, image: 'registry.example.com/shop:1', imagePullPolicy: Never}]"

func TestPodsAreCompletedAsTheConfigurationSays(t *testing.T) {
	c := tenants(t)
	mia := as(t, c, "mia")
	mia.project(c, "mia-shop")

	pod := mia.made("mia-shop", main)
	if got := pod.Spec.Containers[0].ImagePullPolicy; got != corev1.PullAlways {
		t.Errorf("AlwaysPullImages leaves %q", got)
	}
	if pod.Spec.ActiveDeadlineSeconds != nil {
		t.Errorf("a pod that runs for ever has a deadline: %d", *pod.Spec.ActiveDeadlineSeconds)
	}
	if len(pod.Spec.Tolerations) != 0 {
		t.Errorf("DefaultTolerationSeconds is switched off, and adds %v", pod.Spec.Tolerations)
	}
	once := mia.made("mia-shop", main+", restartPolicy: Never")
	if got := once.Spec.ActiveDeadlineSeconds; got == nil || *got != 3600 {
		t.Errorf("RunOnceDuration: the deadline is %v", got)
	}
	if got := mia.made("mia-shop", main+", restartPolicy: OnFailure, activeDeadlineSeconds: 60").Spec.ActiveDeadlineSeconds; got == nil || *got != 60 {
		t.Errorf("RunOnceDuration: a shorter deadline becomes %v", got)
	}
	c.OC("annotate", "namespace", "mia-shop", "openshift.io/active-deadline-seconds-override=1800")
	c.WaitFor("the deadline of the project", func(ctx context.Context) error {
		if got := mia.made("mia-shop", main+", restartPolicy: Never").Spec.ActiveDeadlineSeconds; got == nil || *got != 1800 {
			return fmt.Errorf("it is %v", got)
		}
		return nil
	})

	const limits = "resources: {limits: {cpu: 2, memory: 1Gi}}"
	limited := mia.made("mia-shop", "initContainers: [{name: first, image: none, "+limits+"}], containers: [{name: main, image: none, "+limits+"}]")
	for _, container := range slices.Concat(limited.Spec.InitContainers, limited.Spec.Containers) {
		if requests := container.Resources.Requests; requests.Cpu().String() != "1" || requests.Memory().String() != "256Mi" {
			t.Errorf("ClusterResourceOverride: requests of %s are %v", container.Name, requests)
		}
		if container.ImagePullPolicy != corev1.PullAlways || container.SecurityContext == nil || container.SecurityContext.RunAsUser == nil {
			t.Errorf("AlwaysPullImages and the constraints leave %+v", container)
		}
	}

	pods := core("mia-shop", "pods")
	body := func(spec string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {" + main + ", " + spec + "}}"
	}
	mia.mayNot("POST", pods, body("nodeName: somewhere"), "nodeName is not allowed by your role, which lacks pods/binding")
	mia.mayNot("POST", pods, body("nodeSelector: {kubernetes.io/hostname: somewhere}"), "the node selector label kubernetes.io/hostname is not allowed by your role")
	mia.made("mia-shop", main+", nodeSelector: {disk: fast}")
}

func TestServicesAndEndpointsStayWithinTheNetworksTheyMayReach(t *testing.T) {
	c := tenants(t)
	ned := as(t, c, "ned")
	ned.project(c, "ned-shop")
	service := func(name, address string) string {
		return "{apiVersion: v1, kind: Service, metadata: {name: " + name + "}, spec: {ports: [{port: 80}], externalIPs: [" + address + "]}}"
	}
	ned.may("POST", core("ned-shop", "services"), service("allowed", "192.0.2.7"))
	ned.mayNot("POST", core("ned-shop", "services"), service("excluded", "192.0.2.200"), "is not in networkConfig.externalIPNetworkCIDRs")
	ned.mayNot("POST", core("ned-shop", "services"), service("outside", "198.51.100.1"), "is not in networkConfig.externalIPNetworkCIDRs")
	ned.mayNot("PATCH", core("ned-shop", "services/allowed"), `{"spec":{"externalIPs":["198.51.100.1"]}}`, "is not in networkConfig.externalIPNetworkCIDRs")

	endpoints := func(name, address string) string {
		return "{apiVersion: v1, kind: Endpoints, metadata: {name: " + name + "}, subsets: [{addresses: [{ip: " + address + "}], ports: [{port: 80}]}]}"
	}
	ned.may("POST", core("ned-shop", "endpoints"), endpoints("outside", "203.0.113.5"))
	ned.mayNot("POST", core("ned-shop", "endpoints"), endpoints("pod", "10.128.0.9"), "endpoint address 10.128.0.9 is not allowed")
	ned.mayNot("POST", core("ned-shop", "endpoints"), endpoints("service", "172.30.0.1"), "endpoint address 172.30.0.1 is not allowed")
}

// The example of the administration guide, 16.5.
func TestSelectorsOfPodNodeSelectorAreMerged(t *testing.T) {
	c := tenants(t)
	admin := administrator(t, c)
	admin.may("POST", "/api/v1/namespaces", `
apiVersion: v1
kind: Namespace
metadata:
  name: ns1
  annotations: {scheduler.alpha.kubernetes.io/node-selector: "env=test,infra=fedora", openshift.io/node-selector: ""}
`)
	t.Cleanup(func() { c.OC("delete", "namespace", "ns1", "--wait=false") })
	c.WaitFor("the accounts of ns1", func(context.Context) error {
		_, err := admin.try("GET", core("ns1", "serviceaccounts/default"), "")
		return err
	})
	got := admin.made("ns1", main+", nodeSelector: {env: test, os: fedora}").Spec.NodeSelector
	if diff := cmp.Diff(map[string]string{"env": "test", "infra": "fedora", "os": "fedora"}, got); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	for selector, reason := range map[string]string{
		"{env: production}": "pod node label selector conflicts with its namespace node label selector",
		"{disk: fast}":      "pod node label selector labels conflict with its namespace whitelist",
	} {
		admin.mayNot("POST", core("ns1", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+main+", nodeSelector: "+selector+"}}", reason)
	}
}

// The example of the administration guide, 17.6.
func TestLimitedResourcesNeedAQuota(t *testing.T) {
	c := tenants(t)
	pam := as(t, c, "pam")
	pam.project(c, "pam-shop")
	claim := func(class string) string {
		return "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: {storageClassName: " + class +
			", accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}"
	}
	claims := core("pam-shop", "persistentvolumeclaims")
	pam.may("POST", claims+"?", claim("bronze"))
	pam.mayNot("POST", claims, claim("gold"), "insufficient quota to consume: gold.storageclass.storage.k8s.io/requests.storage")
	administrator(t, c).may("POST", core("pam-shop", "resourcequotas"),
		"{apiVersion: v1, kind: ResourceQuota, metadata: {name: gold}, spec: {hard: {gold.storageclass.storage.k8s.io/requests.storage: 2Gi}}}")
	c.WaitFor("the quota to count", func(context.Context) error {
		_, err := pam.try("POST", claims+"?", claim("gold"))
		return err
	})
}

func TestPodsUseTheSecretsOfTheirAccountAlone(t *testing.T) {
	c := tenants(t)
	lea := as(t, c, "lea")
	lea.project(c, "lea-shop")
	for _, name := range []string{"listed", "other"} {
		lea.may("POST", core("lea-shop", "secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: "+name+"}}")
	}
	lea.may("POST", core("lea-shop", "serviceaccounts"), "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}, secrets: [{name: listed}]}")
	pod := func(secret string) string {
		return "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {serviceAccountName: robot, " + main + ", volumes: [{name: v, secret: {secretName: " + secret + "}}]}}"
	}
	c.WaitFor("the account to count", func(context.Context) error {
		_, err := lea.try("POST", core("lea-shop", "pods")+"?", pod("listed"))
		return err
	})
	lea.mayNot("POST", core("lea-shop", "pods"), pod("other"), "is not allowed because service account robot does not reference that secret")
}

// The examples of the administration guide, 15.12.
func TestConstraintsAreGivenToGroups(t *testing.T) {
	c := tenants(t)
	uma := as(t, c, "uma", "hosts")
	uma.project(c, "uma-shop")
	const mounts = main + ", volumes: [{name: host, hostPath: {path: /etc}}]"
	uma.mayNot("POST", core("uma-shop", "pods"), "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+mounts+"}}", "hostPath")
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
	c.WaitFor("the constraint to count", func(context.Context) error {
		_, err := uma.try("POST", core("uma-shop", "pods")+"?", "{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {"+mounts+"}}")
		return err
	})
	if got := uma.made("uma-shop", mounts).Annotations["openshift.io/scc"]; got != "hostpath" {
		t.Errorf("a pod with a path of the host has the constraint %q", got)
	}
	c.OC("adm", "policy", "add-scc-to-group", "anyuid", "hosts")
	c.WaitFor("any user to be allowed", func(context.Context) error {
		pod := uma.made("uma-shop", main)
		if got := pod.Annotations["openshift.io/scc"]; got != "anyuid" || pod.Spec.Containers[0].SecurityContext.RunAsUser != nil {
			return fmt.Errorf("the constraint is %q, the user %v", got, pod.Spec.Containers[0].SecurityContext.RunAsUser)
		}
		return nil
	})
}
