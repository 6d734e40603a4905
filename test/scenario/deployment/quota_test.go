package deployment

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestQuotaThatRejectsPodsIsReported tests quotas that reject the deployer pod, and quotas that
// reject the deployment's pods.
func TestQuotaThatRejectsPodsIsReported(t *testing.T) {
	c := kit.Shared(t)
	quota := func(pods int) {
		c.Apply(fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: small}, spec: {hard: {pods: %d}}}", pods))
		waitOutput(c, "quota/small", "{.status.hard.pods}", fmt.Sprint(pods))
	}
	quota(0)
	c.Apply(configuration("over", "replicas: 2", version("one")))
	waitReported(c, "the deployer pod", `"over-1-deploy"`)
	if log, err := c.TryOC("logs", "dc/over"); err == nil || !strings.Contains(err.Error(), "exceeded quota: small") {
		t.Errorf("the log is %q, %v", log, err)
	}
	status, err := c.TryOC("rollout", "status", "dc/over", "--timeout=5s")
	if err == nil || !strings.Contains(status, "exceeded quota: small") {
		t.Errorf("the rollout's status is %q, %v", status, err)
	}

	// The quota allows the deployer pod and only one of the deployment's two pods.
	quota(2)
	waitPhase(c, "over-1", running)
	waitReported(c, "a pod", `"over-1-[a-z0-9]{5}"`)
	c.WaitFor("the log of the deployer to name the quota", func(context.Context) error {
		log, err := c.TryOC("logs", "dc/over")
		if err == nil && !strings.Contains(log, "FailedCreate") {
			err = fmt.Errorf("it is %q", log)
		}
		return err
	})
	quota(5)
	waitPhase(c, "over-1", "Complete")
	waitOutput(c, "dc/over", `{.status.conditions[?(@.type=="ReplicaFailure")].status}`, "")
}

// waitReported waits until the condition, the events, the description and the project overview name
// the quota and the rejected pod.
func waitReported(c *kit.Cluster, subject, pattern string) {
	pod := regexp.MustCompile(pattern)
	for place, command := range map[string][]string{
		"condition":   {"get", "dc/over", "-o", `jsonpath={.status.conditions[?(@.reason=="FailedCreate")].message}`},
		"events":      {"get", "events", "-o", `jsonpath={.items[?(@.reason=="FailedCreate")].message}`},
		"description": {"describe", "dc/over"},
		"overview":    {"status", "--suggest"},
	} {
		c.WaitFor(place+" that names the quota that rejects "+subject, func(context.Context) error {
			text, err := c.TryOC(command...)
			if err == nil && (!strings.Contains(text, "exceeded quota: small") || !pod.MatchString(text)) {
				err = fmt.Errorf("it is %q", text)
			}
			return err
		})
	}
}
