package catalog

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// preset adds a binding's credentials, a file and an environment variable to the application's
// pods.
const preset = `{apiVersion: settings.k8s.io/v1alpha1, kind: PodPreset, metadata: {name: db}, spec: {selector: {matchLabels: {app: shop}},
	env: [{name: MODE, value: preset}], envFrom: [{prefix: DB_, secretRef: {name: preset-credentials}}],
	volumes: [{name: settings, configMap: {name: settings}}], volumeMounts: [{name: settings, mountPath: /settings}]}}`

func TestPodPresetAddsCredentialsOfBindingToPods(t *testing.T) {
	c := kit.Shared(t)
	_, url := startBroker(t, c)
	register(t, c, url, "preset")
	c.OC("policy", "add-role-to-user", "edit", "alice")
	c.OC("policy", "add-role-to-user", "view", "victor")
	as := func(user, manifest string) (string, error) {
		return c.TryOCWithInput(manifest, "--as="+user, "--as-group=system:authenticated", "apply", "-f", "-")
	}
	apply := func(manifest string) string {
		t.Helper()
		out, err := as("alice", manifest)
		if err != nil {
			t.Fatalf("%s %v", out, err)
		}
		return out
	}
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: db},
		spec: {clusterServiceClassExternalName: db, clusterServicePlanExternalName: small}}`)
	wait(c, "serviceinstance/db", "{.status.lastConditionState}", "Ready")
	apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: db}, spec: {instanceRef: {name: db}, secretName: preset-credentials}}`)
	wait(c, "servicebinding/db", "{.status.lastConditionState}", "Ready")
	apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {color: blue}}`)
	if out, err := as("victor", preset); err == nil || !strings.Contains(out+err.Error(), "forbidden") {
		t.Errorf("a viewer can create a preset: %s %v", out, err)
	}
	if out, err := as("alice", strings.Replace(preset, "{name: MODE,", "{name: '',", 1)); err == nil || !strings.Contains(out+err.Error(), "spec.env[0].name") {
		t.Errorf("a preset with an invalid variable: %s %v", out, err)
	}
	apply(preset)
	if out := c.OC("--as=victor", "--as-group=system:authenticated", "get", "podpresets"); !strings.Contains(out, "app=shop") {
		t.Errorf("the table is %s", out)
	}

	apply(`{apiVersion: apps/v1, kind: Deployment, metadata: {name: shop}, spec: {selector: {matchLabels: {app: shop}}, template: {metadata: {labels: {app: shop}},
		spec: {terminationGracePeriodSeconds: 1, containers: [{name: shop, image: "` + kit.ToolsImage + `",
		command: [sh, -c, "echo $MODE $DB_uri $(cat /settings/color); sleep 1000000"]}]}}}}`)
	c.OC("rollout", "status", "deployment/shop")
	if out := c.OC("logs", "deployment/shop"); !strings.HasPrefix(out, "preset sql://db/") || !strings.HasSuffix(out, " blue\n") {
		t.Errorf("the output of the application is %q", out)
	}
	if pod := c.OnlyPod("app=shop"); pod.Annotations["podpreset.admission.kubernetes.io/podpreset-db"] == "" {
		t.Errorf("the annotations are %v", pod.Annotations)
	}

	// These pods never run, because they specify a scheduler that does not exist. The test only
	// reads their specs.
	created := func(name, annotations, container string) *corev1.Pod {
		apply(`{apiVersion: v1, kind: Pod, metadata: {name: ` + name + `, labels: {app: shop}, annotations: {` + annotations + `}}, spec: {schedulerName: none,
			containers: [{name: main, image: none` + container + `}]}}`)
		return c.Pod(name)
	}
	excluded := created("excluded", `podpreset.admission.kubernetes.io/exclude: "true"`, "")
	if container := excluded.Spec.Containers[0]; len(container.Env)+len(container.EnvFrom) > 0 {
		t.Errorf("an excluded pod has %+v", container)
	}
	conflicting := created("conflicting", "", ", env: [{name: MODE, value: own}]")
	if container := conflicting.Spec.Containers[0]; len(container.Env) != 1 || len(container.EnvFrom) > 0 {
		t.Errorf("a pod with a conflict has %+v", container)
	}
	if text := conflicting.Annotations["podpreset.slipway.io/conflict"]; !strings.Contains(text, `"MODE"`) {
		t.Errorf("the conflict is %q", text)
	}
}
