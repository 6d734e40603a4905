package attack

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/slipway-platform/slipway/test/kit"
)

// nodeUser returns a user that authenticates with the certificate in a kubeconfig stored on the
// node.
func nodeUser(t *testing.T, c *kit.Cluster, kubeconfig string) *kit.User {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.Dial = c.Dial
	user := kit.NewUser(t, config, rest.ImpersonationConfig{})
	user.Name = filepath.Base(kubeconfig)
	return user
}

// TestNodeCannotTakeOverCluster uses every key stored on a node.
func TestNodeCannotTakeOverCluster(t *testing.T) {
	s := tenants(t)
	s.alice.May("POST", kit.CorePath(s.shop, "secrets"), "{apiVersion: v1, kind: Secret, metadata: {name: private}}")
	administrator := s.Administrator()
	administrator.May("POST", "/api/v1/nodes", "{apiVersion: v1, kind: Node, metadata: {name: another}}")
	t.Cleanup(func() { administrator.May("DELETE", "/api/v1/nodes/another", "") })
	kubeconfigs, err := filepath.Glob(s.Path("pki", "node", "*.kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	may := map[string]string{ // the permissions that each user needs
		"kube-proxy.kubeconfig":      "/apis/discovery.k8s.io/v1/endpointslices",
		"node.kubeconfig":            "/api/v1/services",
		"slipway-dns.kubeconfig":     "/api/v1/namespaces",
		"slipway-idling.kubeconfig":  "/api/v1/services",
		"slipway-node.kubeconfig":    "/api/v1/nodes",
		"slipway-router.kubeconfig":  "/apis/route.openshift.io/v1/routes",
		"slipway-storage.kubeconfig": "/api/v1/persistentvolumes",
	}
	if len(kubeconfigs) != len(may) {
		t.Errorf("the node has %v, want a test for each", kubeconfigs)
	}
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: pod}, spec: {containers: [{name: main, image: " + kit.ToolsImage + "}]}}"
	for _, kubeconfig := range kubeconfigs {
		part := nodeUser(t, s.Cluster, kubeconfig)
		part.May("GET", may[part.Name], "")
		part.MayNot("GET", "/api/v1/secrets", "", "secrets")
		part.MayNot("GET", kit.CorePath(s.shop, "secrets/private"), "", "private")
		part.MayNot("POST", kit.CorePath(s.shop, "pods"), pod, "pod")
		part.MayNot("PATCH", "/api/v1/nodes/another", `{"metadata":{"labels":{"a":"b"}}}`, "node")
		part.MayNot("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: b}, roleRef: {kind: ClusterRole, name: cluster-admin}}", "clusterrolebindings")
	}
}

// TestStorageClientCannotTakeOverNode uses the local storage key, whose client can create
// PersistentVolumes.
func TestStorageClientCannotTakeOverNode(t *testing.T) {
	c := kit.Shared(t)
	storage := nodeUser(t, c, c.Path("pki", "node", "slipway-storage.kubeconfig"))
	volume := func(source string) string {
		return "{apiVersion: v1, kind: PersistentVolume, metadata: {name: forged}, spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, " + source + "}}"
	}
	const volumes, local = "/api/v1/persistentvolumes", "csi: {driver: local.csi.slipway.io, volumeHandle: node/file"
	affinity := ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/os, operator: Exists}]}]}}"
	storage.MayNot("POST", volumes+"?", volume("local: {path: "+c.Path("pki")+"}"+affinity), "only use volumes of the CSI driver")
	storage.MayNot("POST", volumes+"?", volume("hostPath: {path: /}"), "only use volumes of the CSI driver")
	storage.MayNot("POST", volumes+"?", volume("csi: {driver: nfs.example.com, volumeHandle: a}"), "spec.csi.driver")
	storage.MayNot("POST", volumes+"?", volume(local+", nodePublishSecretRef: {namespace: kube-system, name: any}}"), "spec.csi.nodePublishSecretRef")
	storage.May("POST", volumes+"?", volume(local+"}"))
	storage.MayNot("POST", "/apis/storage.k8s.io/v1/csidrivers?", "{apiVersion: storage.k8s.io/v1, kind: CSIDriver, metadata: {name: nfs.example.com}}", "metadata.name")
	storage.MayNot("POST", "/apis/snapshot.storage.k8s.io/v1/volumesnapshotcontents?", `{apiVersion: snapshot.storage.k8s.io/v1, kind: VolumeSnapshotContent, metadata: {name: forged},
		spec: {driver: nfs.example.com, deletionPolicy: Retain, source: {snapshotHandle: a}, volumeSnapshotRef: {namespace: a, name: a}}}`, "spec.driver")
	const capacity = "{apiVersion: storage.k8s.io/v1, kind: CSIStorageCapacity, metadata: {name: forged}, storageClassName: fast, capacity: 1Ti}"
	storage.MayNot("POST", kit.GroupPath("storage.k8s.io", c.Namespace, "csistoragecapacities?"), capacity, "only manage CSIStorageCapacities in namespace")
	storage.May("POST", kit.GroupPath("storage.k8s.io", "openshift-infra", "csistoragecapacities?"), capacity)

	administrator := c.Administrator()
	administrator.May("POST", volumes, strings.Replace(volume("hostPath: {path: /nowhere}"), "forged", "taken", 1))
	t.Cleanup(func() { administrator.May("DELETE", volumes+"/taken", "") })
	storage.MayNot("PATCH", volumes+"/taken", `{"metadata":{"annotations":{"a":"b"}}}`, "only use volumes of the CSI driver")
	storage.MayNot("DELETE", volumes+"/taken", "", "only use volumes of the CSI driver")
}

// TestStorageClientCannotDeleteClaims uses the local storage key, whose client can update claims.
func TestStorageClientCannotDeleteClaims(t *testing.T) {
	s := tenants(t)
	storage := nodeUser(t, s.Cluster, s.Path("pki", "node", "slipway-storage.kubeconfig"))
	claims := kit.CorePath(s.shop, "persistentvolumeclaims")
	for name, class := range map[string]string{"claim-of-driver": "slipway-local", "claim-of-another": "another"} {
		s.alice.May("POST", claims, fmt.Sprintf(`{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: %s},
			spec: {storageClassName: %s, accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}}`, name, class))
		claim := claims + "/" + name
		t.Cleanup(func() { s.alice.May("DELETE", claim, "") })
		for _, path := range []string{claim, claim + "/status"} {
			storage.MayNot("PATCH", path, `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"missing","uid":"1"}]}}`, "metadata.ownerReferences")
			storage.MayNot("PATCH", path, `{"metadata":{"finalizers":null}}`, "metadata.finalizers")
			storage.MayNot("PATCH", path, `{"metadata":{"labels":{"a":"b"}}}`, "metadata.labels")
		}
	}
	const provisioning = `{"metadata":{"finalizers":["kubernetes.io/pvc-protection","csi.slipway.io/provisioning"]}}`
	storage.MayNot("PATCH", claims+"/claim-of-another", provisioning, "neither the StorageClass nor the volume")
	storage.MayNot("PATCH", claims+"/claim-of-another/status", `{"status":{"phase":"Bound"}}`, "neither the StorageClass nor the volume")
	storage.May("PATCH", claims+"/claim-of-driver?", provisioning)
}

func TestNodeCannotGiveItselfReservedLabel(t *testing.T) {
	c := kit.Shared(t)
	name := c.Status().Nodes[0].Name
	kubelet := nodeUser(t, c, c.Path("pki", "node", "node.kubeconfig"))
	kubelet.MayNot("PATCH", "/api/v1/nodes/"+name, `{"metadata":{"labels":{"node-restriction.kubernetes.io/trusted":"true"}}}`, "is not allowed to modify labels")
	kubelet.MayNot("PATCH", "/api/v1/nodes/"+name, `{"metadata":{"labels":{"node-role.kubernetes.io/infra":""}}}`, "is not allowed to modify labels")
}

// TestKubeletClientHasNoOtherRights uses the certificate that the API server presents to kubelets.
func TestKubeletClientHasNoOtherRights(t *testing.T) {
	s := tenants(t)
	config := rest.AnonymousClientConfig(s.Config)
	config.Dial = s.Dial
	config.CertFile, config.KeyFile = s.Path("pki", "master.kubelet-client.crt"), s.Path("pki", "master.kubelet-client.key")
	client := kit.NewUser(t, config, rest.ImpersonationConfig{})
	client.May("GET", "/api/v1/nodes", "")
	client.MayNot("GET", "/api/v1/secrets", "", "system:openshift-node-admin")
	client.MayNot("GET", kit.CorePath(s.shop, "pods"), "", "system:openshift-node-admin")
}

func TestDriverReplaceableByTenantDoesNotRun(t *testing.T) {
	c := kit.Shared(t)
	path := filepath.Join(c.VolumePluginDir, "attack.example.com~open", "open")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Dir(path)) })
	if err := os.WriteFile(path, []byte("#!/bin/sh\ntouch "+path+".ran\necho '{\"status\":\"Success\"}'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o757); err != nil { // set the mode regardless of the umask
		t.Fatal(err)
	}
	c.WaitFor("reason in the list of drivers", func(context.Context) error {
		list := c.Slipway("flexvolume", "list")
		if !strings.Contains(list.Stdout+list.Stderr, "chmod go-w "+path) {
			return fmt.Errorf("the list is\n%s%s", list.Stdout, list.Stderr)
		}
		return nil
	})
	if _, err := os.Stat(path + ".ran"); err == nil {
		t.Error("the driver ran")
	}
}

// TestRouterServesWithoutPrivileges checks the privileges of HAProxy's workers, which parse
// anonymous clients' requests.
func TestRouterServesWithoutPrivileges(t *testing.T) {
	c := kit.Shared(t)
	processes, err := c.Processes()
	if err != nil {
		t.Fatal(err)
	}
	workers := 0
	for _, process := range processes {
		if process.Program() != "haproxy" {
			continue
		}
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", process.PID))
		if err != nil {
			t.Fatal(err)
		}
		// Skip the master process, which starts workers and accepts no connections.
		if strings.Contains(string(status), "\nUid:\t0\t") {
			continue
		}
		workers++
		for _, set := range []string{"CapPrm", "CapEff", "CapInh", "CapAmb"} {
			if !strings.Contains(string(status), "\n"+set+":\t0000000000000000\n") {
				t.Errorf("a worker of HAProxy has capabilities:\n%s", status)
			}
		}
	}
	if workers == 0 {
		t.Errorf("no worker of HAProxy is among %v", processes)
	}
}
