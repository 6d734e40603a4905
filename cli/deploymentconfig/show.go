package deploymentconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/describe"

	"github.com/slipway-platform/slipway/apigroup/apps/rollout"
)

// ViewHistory returns a table of all deployments. If revision is not 0, it returns the pod template
// of that revision instead.
func (c *Client) ViewHistory(namespace, name string, revision int64) (string, error) {
	all, err := c.deployments(context.Background(), namespace, name)
	if err != nil {
		return "", err
	}
	if len(all) == 0 {
		return "No rollout history found.", nil
	}
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 8, 1, '\t', 0)
	if revision == 0 {
		fmt.Fprintln(table, "REVISION\tSTATUS\tCAUSE")
	}
	for _, rc := range slices.Backward(all) {
		switch {
		case revision == 0:
			cause := rc.Annotations[appsv1.DeploymentStatusReasonAnnotation]
			if cause == "" {
				cause = "<unknown>"
			}
			fmt.Fprintf(table, "%d\t%s\t%s\n", rollout.Version(rc), rollout.Phase(rc), cause)
		case rollout.Version(rc) == revision:
			describe.DescribePodTemplate(rc.Spec.Template, describe.NewPrefixWriter(&text))
			return text.String(), nil
		}
	}
	if revision > 0 {
		return "", fmt.Errorf("unable to find the specified revision %d of deployment config %q", revision, name)
	}
	err = table.Flush() // the table must be flushed before text.String is called
	return text.String(), err
}

// GetHistory returns the deployments, keyed by version.
func (c *Client) GetHistory(namespace, name string) (map[int64]runtime.Object, error) {
	all, err := c.deployments(context.Background(), namespace, name)
	if err != nil {
		return nil, err
	}
	history := map[int64]runtime.Object{}
	for _, rc := range all {
		history[rollout.Version(rc)] = rc
	}
	return history, nil
}

// statusViewer describes the status of the latest deployment.
type statusViewer struct{}

// Status returns a line of text with a trailing newline, and whether the rollout is complete. It
// returns an error if the deployment has failed.
func (statusViewer) Status(object runtime.Unstructured, revision int64) (string, bool, error) {
	dc := &appsv1.DeploymentConfig{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.UnstructuredContent(), dc); err != nil {
		return "", false, fmt.Errorf("read deployment config: %w", err)
	}
	status := dc.Status
	latest := status.LatestVersion
	switch {
	case revision > 0 && revision != latest:
		return "", false, fmt.Errorf("desired revision (%d) is different from the running revision (%d)", revision, latest)
	case latest == 0 && rollout.HasTrigger(dc, appsv1.DeploymentTriggerOnImageChange):
		return fmt.Sprintf("Deployment config %q waiting on image update\n", dc.Name), false, nil
	case latest == 0 && len(dc.Spec.Triggers) == 0:
		return fmt.Sprintf("Deployment config %q waiting on manual update (use 'oc rollout latest %s')\n", dc.Name, dc.Name), true, nil
	case dc.Generation > status.ObservedGeneration:
		return "Waiting for latest deployment config spec to be observed by the controller loop...\n", false, nil
	}
	for _, condition := range status.Conditions {
		if condition.Type != appsv1.DeploymentProgressing {
			continue
		}
		// Until the controller has observed the latest deployment, the condition describes the
		// previous deployment.
		ofLatest := strings.Contains(condition.Message, strconv.Quote(rollout.Name(dc.Name, latest)))
		switch reason := appsv1.DeploymentConditionReason(condition.Reason); {
		case reason == appsv1.NewReplicationControllerAvailableReason && ofLatest:
			return condition.Message + "\n", true, nil
		case (reason == appsv1.RolloutCancelledReason || reason == appsv1.ProgressDeadlineExceededReason) && ofLatest,
			reason == appsv1.ReplicationControllerCreateErrorReason:
			return "", true, errors.New(condition.Message)
		}
	}
	if i := slices.IndexFunc(status.Conditions, isReplicaFailure); i >= 0 {
		return fmt.Sprintf("Waiting for rollout to finish: %s\n", status.Conditions[i].Message), false, nil
	}
	switch {
	case status.UpdatedReplicas < dc.Spec.Replicas:
		return fmt.Sprintf("Waiting for rollout to finish: %d out of %d new replicas have been updated...\n", status.UpdatedReplicas, dc.Spec.Replicas), false, nil
	case status.UpdatedReplicas < status.Replicas:
		return fmt.Sprintf("Waiting for rollout to finish: %d old replicas are pending termination...\n", status.Replicas-status.UpdatedReplicas), false, nil
	case status.AvailableReplicas < status.UpdatedReplicas:
		return fmt.Sprintf("Waiting for rollout to finish: %d of %d updated replicas are available...\n", status.AvailableReplicas, status.UpdatedReplicas), false, nil
	}
	return "Waiting for the deployment to be completed...\n", false, nil
}

// isReplicaFailure reports whether the condition means that the deployer pod or other pods cannot
// be created.
func isReplicaFailure(condition appsv1.DeploymentCondition) bool {
	return condition.Type == appsv1.DeploymentReplicaFailure && condition.Status == corev1.ConditionTrue
}
