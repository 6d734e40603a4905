package catalog

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// reportingBundle is a bundle that reports each action and its state to a server outside the
// cluster. The server represents the owner of resources outside the project.
const reportingBundle = `FROM localhost/slipway-tools:current
LABEL com.redhat.apb.spec=%q com.redhat.apb.runtime="2"
ENTRYPOINT ["sh", "-c", "exec wget -q -O /dev/null %s/$1/$POD_NAMESPACE/$(cat $BUNDLE_STATE_LOCATION/order || echo none)", "apb"]
`

// oldBundle is a bundle of runtime version 1. It keeps its credentials in a file of its container,
// and exits after the broker has read them. Its bind action has no playbook, as in most bundles of
// OpenShift 3.7.
const oldBundle = `FROM localhost/slipway-tools:current
LABEL com.redhat.apb.spec=%q com.redhat.apb.runtime="1"
COPY root /
ENTRYPOINT ["sh", "/bin/entrypoint.sh"]
`

// oldBundleFiles contains the scripts of the old bundle. The keys are paths in its image.
var oldBundleFiles = map[string]string{
	"bin/broker-bind-creds": "#!/bin/sh\ncat /var/tmp/bind-creds && rm /var/tmp/bind-creds\n",
	"bin/entrypoint.sh": `case $1 in
bind) exit 8;;
provision)
	echo '{"user": "old"}' | base64 > /var/tmp/new && mv /var/tmp/new /var/tmp/bind-creds
	while test -e /var/tmp/bind-creds; do sleep 1; done;;
esac
`,
}

// reports contains the actions that a reporting bundle has reported, and controls the server that
// receives them.
type reports struct {
	mu      sync.Mutex
	actions []string
	// A provision action ends only after release is closed. end closes release, and can be called
	// repeatedly.
	release chan struct{}
	end     func()
}

func newReports() *reports {
	r := &reports{release: make(chan struct{})}
	r.end = sync.OnceFunc(func() { close(r.release) })
	return r
}

// serve starts the server at an address outside the cluster. The server also sends API requests as
// the service account of the bundle's pod, because the bundle's image has no client for them.
func (r *reports) serve(t *testing.T, c *kit.Cluster, project string) (url string) {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		parts := strings.Split(strings.TrimPrefix(request.URL.Path, "/"), "/")
		action, sandbox, state := parts[0], parts[1], parts[2]
		account := "--as=system:serviceaccount:" + sandbox + ":" + sandbox
		allowed, err := c.TryOC("auth", "can-i", "delete", "deployments", "-n", project, account)
		switch action {
		case "provision": // store the state for the bundle's next action
			if _, err = c.TryOC("create", "configmap", sandbox, "--from-literal=order=17", "-n", sandbox, account); err == nil {
				_, err = c.TryOC("annotate", "pod", sandbox, "apb_last_operation=half done", "-n", sandbox, account)
			}
			<-r.release
		case "bind":
			_, err = c.TryOC("create", "secret", "generic", sandbox, `--from-literal=fields={"user": "bound"}`, "-n", sandbox, account)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.actions = append(r.actions, fmt.Sprintf("%s %s %s %v", action, state, strings.TrimSpace(allowed), err))
	}))
	listener, err := net.Listen("tcp", net.JoinHostPort(c.Distant.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(r.end) // runs before server.Close, which waits for the responses
	return server.URL
}

// publishBundle publishes a bindable bundle and makes the broker discover it. dir is the build
// context. dockerfile returns the bundle's Dockerfile for the value of its label.
func publishBundle(t *testing.T, c *kit.Cluster, name, dir string, dockerfile func(spec string) string) {
	t.Helper()
	text := strings.NewReplacer("rights-apb", name, ", required: true", "", "bindable: false", "bindable: true").Replace(refusedSpec)
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(dockerfile(base64.StdEncoding.EncodeToString([]byte(text)))), 0o644); err != nil {
		t.Fatal(err)
	}
	c.MustSlipway("images", "build", "--tag=localhost/"+name, dir)
	c.MustSlipway("images", "publish", "localhost/"+name+":latest", "openshift/"+name+":latest")
	t.Cleanup(func() { c.In("openshift").OC("delete", "imagestream/"+name) })
	answer, err := c.Client.CoreV1().RESTClient().Post().AbsPath("/brokers/ansible.openshift.io/v2/bootstrap").SetHeader("X-Broker-API-Version", "2.13").DoRaw(t.Context())
	if err != nil || !regexp.MustCompile(`"spec_count":[1-9]`).Match(answer) {
		t.Errorf("the broker reads its bundles: %s, %v", answer, err)
	}
	relist(c, name)
}

func TestPlaybookBundleKeepsCredentialsInItsContainer(t *testing.T) {
	c := kit.Shared(t)
	explain(t, c)
	dir := t.TempDir()
	for path, text := range oldBundleFiles {
		path = filepath.Join(dir, "root", path)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	writable := filepath.Join(dir, "root/var/tmp")
	if err := errors.Join(os.MkdirAll(writable, 0o777), os.Chmod(writable, 0o777)); err != nil {
		t.Fatal(err)
	}
	publishBundle(t, c, "old-apb", dir, func(spec string) string { return fmt.Sprintf(oldBundle, spec) })
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: old}, spec: {clusterServiceClassExternalName: old-apb}}`)
	wait(c, "serviceinstance/old", "{.status.lastConditionState}", "Ready")
	c.Apply(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: old}, spec: {instanceRef: {name: old}}}`)
	wait(c, "servicebinding/old", "{.status.lastConditionState}", "Ready")
	if got := c.OC("extract", "secret/old", "--to=-", "--keys=user"); strings.TrimSpace(got) != "old" {
		t.Errorf("the credentials of the binding are %q", got)
	}
	c.OC("delete", "servicebinding/old")
	c.OC("delete", "serviceinstance/old")
}

// The test kills the control plane while the bundle runs, and finally deletes the project. By then,
// the project's users have lost their roles, and new roles cannot be granted.
func TestPlaybookBundleRunsWhileProjectIsDeleted(t *testing.T) {
	c := kit.Shared(t)
	explain(t, c)
	const project = "deleted-bundle"
	r := newReports()
	url := r.serve(t, c, project)
	publishBundle(t, c, "reporting-apb", t.TempDir(), func(spec string) string { return fmt.Sprintf(reportingBundle, spec, url) })
	c.OC("new-project", project, "--skip-config-write")
	in := c.In(project)
	in.OC("policy", "add-role-to-user", "edit", "alice")
	create := func(manifest string) {
		t.Helper()
		if out, err := in.TryOCWithInput(manifest, "--as=alice", "--as-group=system:authenticated", "create", "-f", "-"); err != nil {
			t.Fatalf("%s %v", out, err)
		}
	}
	create(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceInstance, metadata: {name: outside}, spec: {clusterServiceClassExternalName: reporting-apb}}`)
	in.WaitFor("the progress of the bundle", func(context.Context) error {
		if got := in.OC("get", "serviceinstance/outside", "-o", "jsonpath={.status.conditions[*].message}"); !strings.Contains(got, "(half done)") {
			return fmt.Errorf("the conditions are %s", got)
		}
		return nil
	})
	c.Kill("control-plane")
	r.end()
	wait(in, "serviceinstance/outside", "{.status.lastConditionState}", "Ready")
	create(`{apiVersion: servicecatalog.k8s.io/v1beta1, kind: ServiceBinding, metadata: {name: first}, spec: {instanceRef: {name: outside}}}`)
	wait(in, "servicebinding/first", "{.status.lastConditionState}", "Ready")
	if got := in.OC("extract", "secret/first", "--to=-", "--keys=user"); strings.TrimSpace(got) != "bound" {
		t.Errorf("the credentials of the binding are %q", got)
	}
	in.OC("delete", "servicebinding/first")
	c.OC("delete", "project/"+project, "--wait=false")
	waitDeleted(c, "namespace/"+project)
	r.mu.Lock()
	defer r.mu.Unlock()
	if got := strings.Join(r.actions, ", "); got != "provision none yes <nil>, bind 17 yes <nil>, unbind 17 yes <nil>, deprovision 17 yes <nil>" {
		t.Errorf("the bundle ran as %s", got)
	}
}
