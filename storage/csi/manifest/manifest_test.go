package manifest

import (
	"slices"
	"strings"
	"testing"

	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func config() Config {
	return Config{Driver: "disk.csi.example.org", Image: "example.org/disk:1", SidecarImage: "slipway:1", Namespace: "kube-system", Kubelet: "/var/lib/kubelet"}
}

// pick returns the only object of type T in the deployment.
func pick[T any](t *testing.T, c Config) T {
	t.Helper()
	objects, err := c.Objects()
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if existing, ok := object.(T); ok {
			return existing
		}
	}
	var none T
	t.Fatalf("no %T in the manifest", none)
	return none
}

func TestDaemonSetMounts(t *testing.T) {
	spec := pick[*kubeappsv1.DaemonSet](t, config()).Spec.Template.Spec
	volumes := map[string]*corev1.HostPathVolumeSource{}
	for _, v := range spec.Volumes {
		volumes[v.Name] = v.HostPath
	}
	if got := volumes["registration"].Path; got != "/var/lib/kubelet/plugins_registry" {
		t.Errorf("the registration is %q", got)
	}
	if got := volumes["socket"]; got.Path != "/var/lib/kubelet/plugins/disk.csi.example.org" || *got.Type != corev1.HostPathDirectoryOrCreate {
		t.Errorf("socket is %+v", got)
	}
	mount := func(container, volume string) *corev1.VolumeMount {
		for _, c := range spec.Containers {
			for i := range c.VolumeMounts {
				if c.Name == container && c.VolumeMounts[i].Name == volume {
					return &c.VolumeMounts[i]
				}
			}
		}
		return nil
	}
	if m := mount("driver", "kubelet"); m.MountPath != "/var/lib/kubelet" || *m.MountPropagation != corev1.MountPropagationBidirectional {
		t.Errorf("the driver mounts the kubelet's directory as %+v", m)
	}
	if mount("driver", "registration") != nil || mount("slipway", "kubelet") != nil || mount("slipway", "registration").MountPath != "/registration" {
		t.Error("only the sidecar can mount /registration, and only the driver the kubelet's directory")
	}
}

func TestPodsCanUseTheirSecurityContextConstraints(t *testing.T) {
	objects, err := config().Objects()
	if err != nil {
		t.Fatal(err)
	}
	bindings := map[string]string{}
	for _, object := range objects {
		if binding, ok := object.(*rbacv1.RoleBinding); ok && binding.Namespace == "kube-system" {
			bindings[binding.Subjects[0].Name+" "+binding.RoleRef.Name] = binding.Name
		}
	}
	for _, want := range []string{"disk-csi-example-org-controller system:openshift:scc:anyuid", "disk-csi-example-org-node system:openshift:scc:privileged"} {
		if bindings[want] == "" {
			t.Errorf("no binding %q in %v", want, bindings)
		}
	}
}

func TestDriverObjectHasConfiguredFields(t *testing.T) {
	c, podInfo := config(), true
	c.Object = storagev1.CSIDriverSpec{PodInfoOnMount: &podInfo, VolumeLifecycleModes: []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecycleEphemeral}}
	c.DisabledFeatures = []Feature{Attach}
	spec := pick[*storagev1.CSIDriver](t, c).Spec
	if !*spec.PodInfoOnMount || spec.VolumeLifecycleModes[0] != storagev1.VolumeLifecycleEphemeral || *spec.AttachRequired {
		t.Errorf("the object has %+v", spec)
	}
}

func TestControllersElectLeaderAndShareSocket(t *testing.T) {
	c := config()
	c.NodeSelector = map[string]string{"node-role.kubernetes.io/infra": ""}
	spec := pick[*kubeappsv1.Deployment](t, c).Spec
	if *spec.Replicas != 2 || spec.Template.Spec.Volumes[0].EmptyDir == nil {
		t.Errorf("Deployment %+v", spec)
	}
	if _, ok := spec.Template.Spec.NodeSelector["node-role.kubernetes.io/infra"]; !ok {
		t.Error("the controllers have no node selector for infrastructure nodes")
	}
	helper := spec.Template.Spec.Containers[1]
	if !slices.Contains(helper.Args, "--leader-election") || !slices.Contains(helper.Args, "--csi-address=unix:///csi/csi.sock") {
		t.Errorf("the sidecar has the arguments %q", helper.Args)
	}
}

func TestRBACCoversFeaturesInUse(t *testing.T) {
	may := func(rules []rbacv1.PolicyRule, verb, resource string) bool {
		return slices.ContainsFunc(rules, func(r rbacv1.PolicyRule) bool {
			return slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	}
	all := pick[*rbacv1.ClusterRole](t, config()).Rules
	for _, right := range []string{"patch volumeattachments/status", "create persistentvolumes", "get secrets", "create volumesnapshotcontents"} {
		verb, resource, _ := strings.Cut(right, " ")
		if !may(all, verb, resource) {
			t.Errorf("with all features, the controller is not allowed to %s", right)
		}
	}
	c := config()
	c.DisabledFeatures = Features()
	for _, rule := range pick[*rbacv1.ClusterRole](t, c).Rules {
		for _, resource := range rule.Resources {
			if !slices.Contains([]string{"events", "nodes", "csinodes", "persistentvolumes"}, resource) {
				t.Errorf("without features, the controller is allowed to %q %q", rule.Verbs, resource)
			}
		}
	}
	c = config()
	c.SecretsNamespace = "vault"
	if may(pick[*rbacv1.ClusterRole](t, c).Rules, "get", "secrets") {
		t.Error("the controller is allowed to read secrets in other namespaces")
	}
	objects, _ := c.Objects()
	if !slices.ContainsFunc(objects, func(o runtime.Object) bool {
		role, ok := o.(*rbacv1.Role)
		return ok && role.Namespace == "vault" && may(role.Rules, "get", "secrets")
	}) {
		t.Error("the controller is not allowed to read secrets in the configured namespace")
	}
}

func TestMissingSettingsAreReported(t *testing.T) {
	_, err := Config{Driver: "../x"}.Objects()
	if err == nil {
		t.Fatal("an empty configuration is accepted")
	}
	for _, part := range []string{"../x", "driver image", "Slipway image", "namespace", "kubelet's directory"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not mention %q", err, part)
		}
	}
}
