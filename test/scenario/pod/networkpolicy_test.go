package pod

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

// projects is the shared cluster with two projects. The test's project has policies, and the other
// project has none.
type projects struct {
	*kit.Cluster
	other *kit.Cluster
}

// newProjects creates the two projects, a pod "client" in each of them, and a server in the test's
// project. The server has the label role=frontend, and listens on ports 80 and 8080.
func newProjects(t *testing.T) projects {
	t.Helper()
	c := kit.Shared(t)
	p := projects{c, c.In(c.Namespace + "-other")}
	c.OC("create", "namespace", p.other.Namespace)
	t.Cleanup(func() { c.OC("delete", "namespace", p.other.Namespace, "--wait=false") })
	web := strings.NewReplacer("app: web", "app: web, role: frontend", "exec httpd", "httpd -p 80 -h /tmp/www && exec httpd").Replace(server("web"))
	p.Apply(web)
	p.Apply(task("client"))
	p.other.Apply(task("client"))
	p.WaitPodRunning("web")
	p.WaitPodRunning("client")
	p.other.WaitPodRunning("client")
	return p
}

// url returns the URL of one of the server's ports.
func (p projects) url(port int) string {
	return fmt.Sprintf("http://%s:%d/", p.Pod("web").Status.PodIP, port)
}

// These are the policies in OpenShift 3.11 Cluster Administration, Enabling NetworkPolicy.
const (
	denyByDefault = `
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: deny-by-default
spec:
  podSelector:
  ingress: []
`
	allowSameNamespace = `
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: allow-same-namespace
spec:
  podSelector:
  ingress:
  - from:
    - podSelector: {}
`
	allowHTTP = `
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: allow-http-and-https
spec:
  podSelector:
    matchLabels:
      role: frontend
  ingress:
  - ports:
    - protocol: TCP
      port: 80
    - protocol: TCP
      port: 443
`
	allowFromLabel = `
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata:
  name: allow-from-labeled-namespace
spec:
  podSelector:
  ingress:
  - from:
    - namespaceSelector:
        matchLabels:
          name: default
`
)

func TestPoliciesOfGuideIsolatePods(t *testing.T) {
	p := newProjects(t)
	p.other.WaitFetch("client", p.url(8080), "I am web")

	p.Apply(denyByDefault)
	p.WaitBlocked("client", p.url(8080))
	p.other.WaitBlocked("client", p.url(80))
	// The node must be able to reach its pods, because probes and routes depend on it.
	if page := fetch(t, p.Cluster, p.Pod("web").Status.PodIP+":8080"); page != "I am web\n" {
		t.Errorf("page %q", page)
	}

	p.Apply(allowSameNamespace)
	p.WaitFetch("client", p.url(8080), "I am web")
	p.other.WaitBlocked("client", p.url(80))

	p.Apply(allowHTTP)
	p.other.WaitFetch("client", p.url(80), "I am web")
	p.other.WaitBlocked("client", p.url(8080))

	p.Apply(allowFromLabel)
	p.OC("label", "namespace", p.other.Namespace, "name=default")
	p.other.WaitFetch("client", p.url(8080), "I am web")
	p.OC("label", "namespace", p.other.Namespace, "name-")
	p.other.WaitBlocked("client", p.url(8080))
	p.OC("label", "pod", "web", "role=backend", "--overwrite")
	p.other.WaitBlocked("client", p.url(80))

	p.OC("delete", "networkpolicy", "--all")
	p.other.WaitFetch("client", p.url(8080), "I am web")
}

func TestPolicyPrecedesFirstPacketOfPod(t *testing.T) {
	p := newProjects(t)
	p.other.Apply(`
kind: NetworkPolicy
apiVersion: networking.k8s.io/v1
metadata: {name: no-egress}
spec: {podSelector: {}, policyTypes: [Egress]}
`)
	const count = 5
	for i := range count {
		p.other.Apply(fmt.Sprintf(`
apiVersion: v1
kind: Pod
metadata: {name: hasty-%d}
spec:
  restartPolicy: Never
  containers:
  - name: task
    image: %s
    command: [sh, -c, "wget -T 3 -q -O - %s 2>/dev/null || echo blocked"]
`, i, kit.ToolsImage, p.url(8080)))
	}
	for i := range count {
		name := fmt.Sprintf("hasty-%d", i)
		p.WaitFor("end of pod "+name, func(context.Context) error {
			if phase := p.other.Pod(name).Status.Phase; phase != "Succeeded" {
				return fmt.Errorf("the phase of the pod is %s", phase)
			}
			return nil
		})
		if log := p.other.OC("logs", name); log != "blocked\n" {
			t.Errorf("pod %s had a connection before its policy: %q", name, log)
		}
	}
}

func TestPoliciesOutliveNodeProcess(t *testing.T) {
	p := newProjects(t)
	p.Apply(denyByDefault)
	p.other.WaitBlocked("client", p.url(8080))
	p.Kill("node")
	if response, err := p.other.TryOC("exec", "client", "--", "timeout", "2", "wget", "-q", "-O", "-", p.url(8080)); err == nil {
		t.Errorf("while the process starts: %q", response)
	}
	p.Apply(server("late"))
	p.WaitPodRunning("late")
	p.other.WaitBlocked("client", fmt.Sprintf("http://%s:8080/", p.Pod("late").Status.PodIP))
	p.Apply(allowSameNamespace)
	p.WaitFetch("client", p.url(8080), "I am web")
}
