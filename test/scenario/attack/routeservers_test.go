package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	routev1 "github.com/openshift/api/route/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

// TestRoutesTimesEndpointsAreLimited creates many routes to many endpoints, which the router would
// keep in memory and check a thousand times per second.
func TestRoutesTimesEndpointsAreLimited(t *testing.T) {
	s := tenants(t)
	service, endpoints := wide(t, "wide", 1000, 1)
	s.mallory.May("POST", kit.CorePath(s.evil, "services"), service)
	s.mallory.May("POST", kit.CorePath(s.evil, "endpoints"), endpoints)
	const count = 40
	for i := range count {
		s.mallory.May("POST", kit.GroupPath(routev1.GroupName, s.evil, "routes"), fmt.Sprintf(
			"{apiVersion: route.openshift.io/v1, kind: Route, metadata: {name: r%d, annotations: {router.openshift.io/haproxy.health.check.interval: 1ms}}, spec: {to: {name: wide}}}", i))
	}
	var text string
	s.WaitFor("backends of all routes", func(context.Context) error {
		content, err := os.ReadFile(s.Path("run", "router", "conf", "haproxy.config"))
		text = string(content)
		if got := strings.Count(text, "\nbackend be_http:"+s.evil+":"); got < count {
			return errors.Join(err, fmt.Errorf("there are %d", got))
		}
		return err
	})
	if got := strings.Count(text, ":203.0.1"); got == 0 || got > 2*10_000 {
		t.Errorf("HAProxy has %d servers", got)
	}
	if strings.Contains(text, "check inter 1ms") {
		t.Error("HAProxy checks servers each millisecond")
	}
}
