package manifest

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestObjectsOfOldVersionsAreConverted(t *testing.T) {
	for name, tt := range map[string]struct{ old, want string }{
		"OpenShift kind without a group": {
			"{apiVersion: v1, kind: Route, metadata: {name: a}}",
			"{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: a}}",
		},
		"list of an OpenShift kind": {
			"{apiVersion: v1, kind: ImageStreamList, items: [{metadata: {name: a, generation: 9007199254740993}}]}",
			"{apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: a, generation: 9007199254740993}}",
		},
		"template, whose objects are converted when it is processed": {
			"{apiVersion: v1, kind: Template, objects: [{apiVersion: v1, kind: Route}]}",
			"{apiVersion: template.openshift.io/v1, kind: Template, objects: [{apiVersion: v1, kind: Route}]}",
		},
		"deployment of extensions": {
			"{apiVersion: extensions/v1beta1, kind: Deployment, spec: {rollbackTo: {revision: 1}, template: {metadata: {labels: {app: a}}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}, " +
				"strategy: {type: RollingUpdate, rollingUpdate: {maxSurge: 1, maxUnavailable: 1}}}}",
		},
		"deployment that recreates": {
			"{apiVersion: extensions/v1beta1, kind: Deployment, spec: {strategy: {type: Recreate}, selector: {matchLabels: {app: a}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {strategy: {type: Recreate}, selector: {matchLabels: {app: a}}}}",
		},
		"deployment of apps": {
			"{apiVersion: apps/v1beta2, kind: Deployment, spec: {selector: {matchLabels: {app: a}}}}",
			"{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {app: a}}}}",
		},
		"daemon set": {
			"{apiVersion: extensions/v1beta1, kind: DaemonSet, spec: {templateGeneration: 3, template: {metadata: {labels: {app: a}}}}}",
			"{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}, updateStrategy: {type: OnDelete}}}",
		},
		"stateful set": {
			"{apiVersion: apps/v1beta1, kind: StatefulSet, spec: {template: {metadata: {labels: {app: a}}}}}",
			"{apiVersion: apps/v1, kind: StatefulSet, spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}}, updateStrategy: {type: OnDelete}}}",
		},
		"replica set": {"{apiVersion: extensions/v1beta1, kind: ReplicaSet, spec: {}}", "{apiVersion: apps/v1, kind: ReplicaSet, spec: {}}"},
		"ingress": {
			"{apiVersion: extensions/v1beta1, kind: Ingress, spec: {backend: {serviceName: a, servicePort: 80}, " +
				"rules: [{http: {paths: [{path: /b, backend: {serviceName: b, servicePort: web}}]}}]}}",
			"{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}, " +
				"rules: [{http: {paths: [{path: /b, pathType: ImplementationSpecific, backend: {service: {name: b, port: {name: web}}}}]}}]}}",
		},
		"network policy": {"{apiVersion: extensions/v1beta1, kind: NetworkPolicy}", "{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy}"},
		"cron job":       {"{apiVersion: batch/v2alpha1, kind: CronJob}", "{apiVersion: batch/v1, kind: CronJob}"},
		"role binding": {
			"{apiVersion: rbac.authorization.k8s.io/v1beta1, kind: RoleBinding, roleRef: {kind: Role, name: a}}",
			"{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {kind: Role, name: a, apiGroup: rbac.authorization.k8s.io}}",
		},
		"webhook": {
			"{apiVersion: admissionregistration.k8s.io/v1beta1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a}]}",
			"{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, webhooks: [{name: a, failurePolicy: Ignore, " +
				"matchPolicy: Exact, timeoutSeconds: 30, admissionReviewVersions: [v1beta1], sideEffects: None}]}",
		},
		"custom resource": {
			"{apiVersion: apiextensions.k8s.io/v1beta1, kind: CustomResourceDefinition, spec: {group: g, version: v1, subresources: {status: {}}, " +
				"additionalPrinterColumns: [{name: A, type: string, JSONPath: .spec.a}]}}",
			"{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, spec: {group: g, versions: [{name: v1, served: true, storage: true, " +
				"schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}, subresources: {status: {}}, " +
				"additionalPrinterColumns: [{name: A, type: string, jsonPath: .spec.a}]}]}}",
		},
		"target of an autoscaler": {
			"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: v1, kind: DeploymentConfig, name: a}}}",
			"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, name: a}}}",
		},
		"target of an autoscaler, without a version": {
			"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {kind: DeploymentConfig, name: a}}}",
			"{apiVersion: autoscaling/v1, kind: HorizontalPodAutoscaler, spec: {scaleTargetRef: {apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, name: a}}}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, changes := Convert([]byte(tt.old))
			if diff := cmp.Diff(read(t, []byte(tt.want)), read(t, got)); diff != "" {
				t.Errorf("converted (-want +got):\n%s", diff)
			}
			want := 1
			if strings.Contains(tt.old, "kind: ImageStreamList") {
				want = 2 // the list and its item are both converted
			}
			if len(changes) != want {
				t.Errorf("changes are %v, want %d", changes, want)
			}
		})
	}
}

func read(t *testing.T, text []byte) (object map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal(text, &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func TestServedVersionsAreUnchanged(t *testing.T) {
	for _, text := range []string{
		"apiVersion: v1\nkind: ConfigMap # a comment\n",
		"apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: route.openshift.io/v1\nkind: Route\n",
		"apiVersion: v1\nkind: Role\nnot: [yaml",
		"just text",
		"",
	} {
		if got, changes := Convert([]byte(text)); string(got) != text || changes != nil {
			t.Errorf("%q became %q, %v", text, got, changes)
		}
	}
}

func TestConvertedListsBecomeDocuments(t *testing.T) {
	got, changes := Convert([]byte("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap}, {apiVersion: v1, kind: ImageStream}]}"))
	want := "apiVersion: v1\nkind: ConfigMap\n\n---\napiVersion: image.openshift.io/v1\nkind: ImageStream\n"
	if string(got) != want || len(changes) != 1 {
		t.Errorf("%v in\n%s", changes, got)
	}
}

func TestDocumentsAreConvertedSeparately(t *testing.T) {
	got, changes := Convert([]byte("---\napiVersion: v1\nkind: ConfigMap\n---\napiVersion: v1\nkind: BuildConfig\nmetadata: {name: app}\n"))
	if len(changes) != 1 || !strings.Contains(string(got), "kind: ConfigMap") || !strings.Contains(string(got), "build.openshift.io/v1") {
		t.Errorf("%v in\n%s", changes, got)
	}
	want := `BuildConfig "app": apiVersion v1 is no longer served, build.openshift.io/v1 is used`
	if len(changes) > 0 && changes[0].String() != want {
		t.Errorf("warning is %q", changes[0])
	}
}

func TestChangedDefaultsAreReported(t *testing.T) {
	_, changes := Convert([]byte("{apiVersion: policy/v1beta1, kind: PodDisruptionBudget, spec: {selector: {}}}"))
	if len(changes) != 1 || !strings.Contains(changes[0].String(), "selects all pods") {
		t.Errorf("changes are %v", changes)
	}
}
