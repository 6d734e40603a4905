// Package attack attacks a real cluster as a tenant. Mallory administers one project and tries to
// reach Alice's project, the host and the platform. Each file contains one kind of attack. A test
// passes if the attack fails.
package attack

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// master makes the master's DNS server accept queries on all addresses. By default, the port is
// closed to clients.
const master = "dnsConfig: {bindAddress: \"0.0.0.0:8053\"}"

func TestMain(m *testing.M) { kit.MainWith(m, kit.Options{Master: master}) }

// stage is the shared cluster, with an attacker and a victim for one test.
type stage struct {
	*kit.Cluster
	// mallory is the attacker. She administers only the project in evil.
	mallory *kit.User
	evil    string
	// alice is the victim. She administers the project in shop.
	alice *kit.User
	shop  string
}

// tenants returns the shared cluster with two users, each of whom administers a project. The
// projects are deleted when the test ends.
func tenants(t *testing.T) *stage {
	t.Helper()
	c := kit.Shared(t)
	s := &stage{
		Cluster: c,
		mallory: c.User("mallory"), evil: projectName(c.Namespace, "evil"),
		alice: c.User("alice"), shop: projectName(c.Namespace, "shop"),
	}
	s.mallory.RequestProject(c, s.evil)
	s.alice.RequestProject(c, s.shop)
	return s
}

// projectName returns a valid project name that ends with the given role, such as "evil".
func projectName(namespace, role string) string {
	const limit = 63
	return strings.TrimRight(namespace[:min(len(namespace), limit-len(role)-1)], "-") + "-" + role
}

func TestTenantCannotReadProjectOfAnother(t *testing.T) {
	s := tenants(t)
	s.alice.May("POST", kit.CorePath(s.shop, "configmaps"), "{apiVersion: v1, kind: ConfigMap, metadata: {name: private}}")
	for _, resource := range []string{"configmaps/private", "configmaps", "secrets", "pods", "serviceaccounts"} {
		s.mallory.MayNot("GET", kit.CorePath(s.shop, resource), "", "cannot")
	}
	s.alice.May("GET", kit.CorePath(s.shop, "configmaps/private"), "")
}
