package migrate

import (
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newAutoscalers returns the `oc adm migrate legacy-hpa` command.
func newAutoscalers(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	w := newWalk("horizontalpodautoscalers.autoscaling")
	command := &cobra.Command{
		Use: "legacy-hpa", Short: "Update HPAs to point to the latest group-version-kinds",
		Long: `Update the scale targets of horizontal pod autoscalers to current API versions.

Deployment configurations without a group (v1), or with the group extensions as the web console wrote it, become apps.openshift.io/v1. Deployments and replica sets
of extensions and of the beta versions of apps become apps/v1. Replication controllers become v1.`,
		Example: `  # List the changes
  oc adm migrate legacy-hpa

  # Make the changes
  oc adm migrate legacy-hpa --confirm`,
		Run: func(command *cobra.Command, args []string) {
			util.CheckErr(cobra.NoArgs(command, args))
			util.CheckErr(w.run(command.Context(), factory, streams.Out, migration{change: retarget}))
		},
	}
	w.addFlags(command)
	return command
}

// targets maps outdated versions and kinds of scale targets to their current API versions.
func targets() map[metav1.TypeMeta]string {
	const deploymentConfigs, apps = "apps.openshift.io/v1", "apps/v1"
	return map[metav1.TypeMeta]string{
		{Kind: "DeploymentConfig"}:                                        deploymentConfigs,
		{Kind: "DeploymentConfig", APIVersion: "v1"}:                      deploymentConfigs,
		{Kind: "DeploymentConfig", APIVersion: "extensions/v1beta1"}:      deploymentConfigs,
		{Kind: "Deployment", APIVersion: "extensions/v1beta1"}:            apps,
		{Kind: "Deployment", APIVersion: "apps/v1beta1"}:                  apps,
		{Kind: "Deployment", APIVersion: "apps/v1beta2"}:                  apps,
		{Kind: "ReplicaSet", APIVersion: "extensions/v1beta1"}:            apps,
		{Kind: "ReplicaSet", APIVersion: "apps/v1beta2"}:                  apps,
		{Kind: "StatefulSet", APIVersion: "apps/v1beta1"}:                 apps,
		{Kind: "StatefulSet", APIVersion: "apps/v1beta2"}:                 apps,
		{Kind: "ReplicationController", APIVersion: "extensions/v1beta1"}: "v1",
	}
}

// retarget updates the API version in an autoscaler's reference to its target. It reports whether
// it changed the object.
func retarget(object *unstructured.Unstructured) (bool, error) {
	var meta metav1.TypeMeta
	at := []string{"spec", "scaleTargetRef"}
	target, _, err := unstructured.NestedStringMap(object.Object, at...)
	if err != nil {
		return false, fmt.Errorf("read scale target: %w", err)
	}
	meta.APIVersion, meta.Kind = target["apiVersion"], target["kind"]
	present, old := targets()[meta]
	if !old {
		return false, nil
	}
	return true, unstructured.SetNestedField(object.Object, present, append(at, "apiVersion")...)
}
