// Package rights tests users' permissions on a real cluster: project visibility, roles, security
// context constraints and pod admission. The administrator impersonates the users.
package rights

import (
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

// as returns the flags that impersonate a logged-in user.
func as(name string, more ...string) []string {
	flags := []string{"--as=" + name, "--as-group=system:authenticated", "--as-group=system:authenticated:oauth"}
	return append(flags, more...)
}

// oc runs a command as a user, and fails the test if the command fails. It returns the output.
func oc(c *kit.Cluster, user string, args ...string) string {
	return c.OC(append(args, as(user)...)...)
}

// expectRejected runs a command as a user. It fails the test if the command succeeds, and returns
// the error output.
func expectRejected(t *testing.T, c *kit.Cluster, user string, args ...string) string {
	t.Helper()
	out, err := c.TryOC(append(args, as(user)...)...)
	if err == nil {
		t.Fatalf("%s can do %v: %s", user, args, out)
	}
	return out + err.Error()
}

// must fails the test unless the text contains the part.
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
