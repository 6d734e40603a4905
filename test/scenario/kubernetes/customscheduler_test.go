package kubernetes

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-platform/slipway/test/kit"
)

const customSchedulerImage = "localhost/custom-scheduler:1"

// customSchedulerFiles contains the files that the image contains in addition to the program. The
// configuration disables leader election, because the default lease belongs to the default
// scheduler.
var customSchedulerFiles = map[string]string{
	"Dockerfile": "FROM " + kit.ToolsImage + `
ADD kube-scheduler /usr/local/bin/kube-scheduler
ADD scheduler.yaml /etc/scheduler.yaml
CMD ["/usr/local/bin/kube-scheduler", "--config=/etc/scheduler.yaml"]
`,
	"scheduler.yaml": `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles: [{schedulerName: custom-scheduler}]
`,
}

// customScheduler is the manifest in section 16.4.2 of the guide, with an image that the test
// builds.
const customScheduler = `
apiVersion: v1
kind: ServiceAccount
metadata:
  name: custom-scheduler
  namespace: kube-system
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: custom-scheduler
subjects:
- kind: ServiceAccount
  name: custom-scheduler
  namespace: kube-system
roleRef:
  kind: ClusterRole
  name: system:kube-scheduler
  apiGroup: rbac.authorization.k8s.io
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: custom-scheduler
  namespace: kube-system
  labels:
    app: custom-scheduler
spec:
  replicas: 1
  selector:
    matchLabels:
      app: custom-scheduler
  template:
    metadata:
      labels:
        app: custom-scheduler
    spec:
      serviceAccount: custom-scheduler
      containers:
        - name: custom-scheduler
          image: ` + customSchedulerImage + `
`

// TestCustomSchedulerPlacesItsPods runs upstream's scheduler as a second scheduler, according to
// section 16.4 of the Cluster Administration guide.
func TestCustomSchedulerPlacesItsPods(t *testing.T) {
	c := kit.Shared(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "kube-scheduler"), "k8s.io/kubernetes/cmd/kube-scheduler")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the scheduler: %v\n%s", err, output)
	}
	for name, content := range customSchedulerFiles {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c.MustSlipway("images", "build", "--tag="+customSchedulerImage, dir)

	makePod(t, c, pod("custom-scheduler-example", sleeper(), "schedulerName: custom-scheduler"))
	makePod(t, c, pod("default-example", sleeper()))
	c.WaitPodRunning("default-example")
	if node := c.Pod("custom-scheduler-example").Spec.NodeName; node != "" {
		t.Errorf("pod is on node %q before its scheduler runs", node)
	}

	c.In("kube-system").Apply(customScheduler)
	t.Cleanup(func() {
		c.OC("delete", "-n", "kube-system", "deployment/custom-scheduler", "serviceaccount/custom-scheduler")
		c.OC("delete", "clusterrolebinding", "custom-scheduler")
	})
	c.WaitPodRunning("custom-scheduler-example")
	for name, scheduler := range map[string]string{"custom-scheduler-example": "custom-scheduler", "default-example": "default-scheduler"} {
		if output := c.OC("describe", "pod", name); !strings.Contains(output, scheduler+"  ") || !strings.Contains(output, "Successfully assigned") {
			t.Errorf("describe pod %s does not name %s:\n%s", name, scheduler, output)
		}
	}
}
