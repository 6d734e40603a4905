package tenants

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestRequestsForOpenShiftTypesAreAudited uses the default audit policy. The log must contain each
// request's user and resource, and no part of the request body.
func TestRequestsForOpenShiftTypesAreAudited(t *testing.T) {
	c := tenants(t)
	olga := c.User("olga")
	olga.RequestProject(c, "olga-shop")
	olga.May("POST", kit.GroupPath("route.openshift.io", "olga-shop", "routes"),
		"{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: front}, spec: {to: {name: web}}}")
	c.WaitFor("the route in the audit log", func(context.Context) error {
		content, err := os.ReadFile(c.Path("log", "audit.log"))
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(content)) {
			var event struct {
				Level, Stage, Verb string
				ImpersonatedUser   struct{ Username string }
				ObjectRef          struct{ APIGroup, Resource, Namespace string }
				RequestObject      json.RawMessage
			}
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				continue // the last entry might be incomplete
			}
			if event.ObjectRef.Resource == "routes" && event.ObjectRef.Namespace == "olga-shop" && event.Verb == "create" && event.Stage == "ResponseComplete" {
				if event.Level != "Metadata" || event.ImpersonatedUser.Username != "olga" || event.ObjectRef.APIGroup != "route.openshift.io" || event.RequestObject != nil {
					t.Errorf("the entry is %s", line)
				}
				return nil
			}
		}
		return errors.New("no entry names the route")
	})
}
