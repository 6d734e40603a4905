package instance

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestStateOfObjects(t *testing.T) {
	rollout := func(available, progressing, reason string) string {
		return fmt.Sprintf(`metadata: {generation: 2}, status: {observedGeneration: 2, conditions: [
			{type: Available, status: "%s"}, {type: Progressing, status: "%s", reason: %s}]}`, available, progressing, reason)
	}
	for content, want := range map[string]state{
		"apiVersion: v1, kind: ConfigMap":                                                                                            ready,
		"apiVersion: build.openshift.io/v1, kind: Build, status: {phase: Complete}":                                                  ready,
		"apiVersion: build.openshift.io/v1, kind: Build, status: {phase: Running}":                                                   pending,
		"apiVersion: build.openshift.io/v1, kind: Build, status: {phase: Cancelled}":                                                 failed,
		"apiVersion: build.openshift.io/v1, kind: BuildConfig, status: {lastVersion: 0}":                                             pending,
		"apiVersion: route.openshift.io/v1, kind: Route, spec: {host: a}":                                                            ready,
		"apiVersion: route.openshift.io/v1, kind: Route, spec: {to: {name: a}}":                                                      pending,
		"apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Complete, status: \"True\"}]}":                                ready,
		"apiVersion: batch/v1, kind: Job, status: {conditions: [{type: Failed, status: \"True\"}]}":                                  failed,
		"apiVersion: batch/v1, kind: Job, status: {active: 1}":                                                                       pending,
		"apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}, status: {readyReplicas: 2}":                                    ready,
		"apiVersion: apps/v1, kind: StatefulSet, spec: {replicas: 2}, status: {readyReplicas: 1}":                                    pending,
		"apiVersion: apps/v1, kind: StatefulSet, metadata: {generation: 1}, spec: {replicas: 0}":                                     pending,
		"apiVersion: apps/v1, kind: Deployment, " + rollout("True", "True", "NewReplicaSetAvailable"):                                ready,
		"apiVersion: apps/v1, kind: Deployment, " + rollout("True", "True", "ReplicaSetUpdated"):                                     pending,
		"apiVersion: apps/v1, kind: Deployment, " + rollout("True", "False", "ProgressDeadlineExceeded"):                             failed,
		"apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, " + rollout("True", "True", "NewReplicationControllerAvailable"):  ready,
		"apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, " + rollout("False", "True", "NewReplicationControllerAvailable"): pending,
		"apiVersion: apps.openshift.io/v1, kind: DeploymentConfig, metadata: {generation: 3}, status: {observedGeneration: 2}":       pending,
	} {
		text, err := yaml.YAMLToJSON([]byte("{" + content + "}"))
		if err != nil {
			t.Fatal(err)
		}
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(text); err != nil {
			t.Fatal(err)
		}
		if got, err := (&reconciler{}).state(t.Context(), object); got != want || err != nil {
			t.Errorf("%s: state %d, %v, want %d", content, got, err, want)
		}
	}
}
