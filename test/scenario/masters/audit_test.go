package masters

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// auditResult is the result of a search in the audit logs.
type auditResult struct {
	Events  []struct{ Master string }
	Missing []struct{ Master string }
}

// checkAudit checks that a search through one master finds a request in each master's audit log.
// The result must name the masters that do not respond.
func checkAudit(t *testing.T, c *kit.Cluster, masters map[string]*kit.Cluster, missing ...string) {
	t.Helper()
	const object = "audited"
	for name, master := range masters {
		if _, err := master.Client.CoreV1().ConfigMaps("default").Get(t.Context(), object, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Fatalf("request to master %s: %v", name, err)
		}
	}
	c.WaitFor("the requests in the audit logs", func(context.Context) error {
		output, err := c.TryOC("get", "--raw", "/slipway/audit?name="+object)
		if err != nil {
			return err
		}
		var result auditResult
		if err := json.Unmarshal([]byte(output), &result); err != nil {
			return err
		}
		var got []string
		for _, m := range result.Missing {
			got = append(got, m.Master)
		}
		for name := range masters {
			if !slices.ContainsFunc(result.Events, func(e struct{ Master string }) bool { return e.Master == name }) {
				return fmt.Errorf("no request to master %s: %s", name, output)
			}
		}
		if !slices.Equal(got, missing) {
			return fmt.Errorf("the missing masters are %q, want %q: %s", got, missing, output)
		}
		return nil
	})
}
