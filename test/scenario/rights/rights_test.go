// Package rights proves who may do what on a real cluster: projects and who sees them, roles,
// security context constraints and the checks of pods. Users are impersonated, which the
// administrator may do.
package rights

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// as returns the flags that make a request in the name of someone who logged in.
func as(name string, more ...string) []string {
	flags := []string{"--as=" + name, "--as-group=system:authenticated", "--as-group=system:authenticated:oauth"}
	return append(flags, more...)
}

// oc runs a command as a user and fails the test when it fails.
func oc(c *kit.Cluster, user string, args ...string) string {
	return c.OC(append(args, as(user)...)...)
}

// refused runs a command as a user that must fail, and returns what it says.
func refused(t *testing.T, c *kit.Cluster, user string, args ...string) string {
	t.Helper()
	out, err := c.TryOC(append(args, as(user)...)...)
	if err == nil {
		t.Fatalf("%s may do %v: %s", user, args, out)
	}
	return out + err.Error()
}

// must fails the test unless the text has the part.
func must(t *testing.T, text, part string) {
	t.Helper()
	if !strings.Contains(text, part) {
		t.Errorf("%q does not have %q", text, part)
	}
}

const (
	projectRequest = `{"apiVersion":"project.openshift.io/v1","kind":"ProjectRequest","metadata":{"name":%q},"displayName":"A shop","description":"Sells things"}`
)

func request(t *testing.T, c *kit.Cluster, user, name string) string {
	t.Helper()
	out, err := tryRequest(c, user, name)
	if err != nil {
		t.Fatalf("%s requests project %s: %v: %s", user, name, err, out)
	}
	t.Cleanup(func() { _, _ = c.TryOC("delete", "namespace", name, "--wait=false") })
	return out
}

func tryRequest(c *kit.Cluster, user, name string) (string, error) {
	body := strings.Replace(projectRequest, "%q", `"`+name+`"`, 1)
	return c.TryOCWithInput(body, append([]string{"create", "--raw", "/apis/project.openshift.io/v1/projectrequests", "-f", "-"}, as(user)...)...)
}
