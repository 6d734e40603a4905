package catalog

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// reportingBundle is a bundle that reports each action and its state to a server outside the
// cluster. The server represents the owner of resources that are not in the project.
const reportingBundle = `FROM localhost/slipway-tools:current
LABEL com.redhat.apb.spec=%q com.redhat.apb.runtime="2"
ENTRYPOINT ["sh", "-c", "exec wget -q -O /dev/null %s/$1/$POD_NAMESPACE/$(cat $BUNDLE_STATE_LOCATION/order || echo none)", "apb"]
`

// While a project is being deleted, its users have lost their roles and nobody can grant new ones.
func TestPlaybookBundleRunsWhileProjectIsDeleted(t *testing.T) {
	c := kit.Shared(t)
	explain(t, c)
	const project = "deleted-bundle"
	var mu sync.Mutex
	var actions []string
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/"), "/")
		action, sandbox, state := parts[0], parts[1], parts[2]
		account := "--as=system:serviceaccount:" + sandbox + ":" + sandbox
		allowed, err := c.TryOC("auth", "can-i", "delete", "deployments", "-n", project, account)
		if action == "provision" { // the bundle stores state for its next operation
			_, err = c.TryOC("create", "configmap", sandbox, "--from-literal=order=17", "-n", sandbox, account)
		}
		mu.Lock()
		defer mu.Unlock()
		actions = append(actions, fmt.Sprintf("%s %s %s %v", action, state, strings.TrimSpace(allowed), err))
	}))
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)

	dir := t.TempDir()
	spec := base64.StdEncoding.EncodeToString([]byte(strings.NewReplacer("rights-apb", "reporting-apb", ", required: true", "").Replace(refusedSpec)))
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), fmt.Appendf(nil, reportingBundle, spec, server.URL), 0o644); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag=localhost/reporting-apb", dir)
	c.MustSlipway("images", "publish", "localhost/reporting-apb:latest", "openshift/reporting-apb:latest")
	t.Cleanup(func() { c.In("openshift").OC("delete", "imagestream/reporting-apb") })
	relist(c, "reporting-apb")
	c.OC("new-project", project, "--skip-config-write")
	in := c.In(project)
	in.OC("policy", "add-role-to-user", "edit", "alice")
	order := `{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: outside}, spec: {clusterServiceClassExternalName: reporting-apb}}`
	if out, err := in.TryOCWithInput(order, "--as=alice", "--as-group=system:authenticated", "create", "-f", "-"); err != nil {
		t.Fatalf("%s %v", out, err)
	}
	wait(in, "serviceinstance/outside", "{.status.lastConditionState}", "Ready")
	c.OC("delete", "project/"+project, "--wait=false")
	waitDeleted(c, "namespace/"+project)
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(actions, ", "); got != "provision none yes <nil>, deprovision 17 yes <nil>" {
		t.Errorf("the bundle ran as %s", got)
	}
}
