package measure

import (
	"flag"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/slipway-platform/slipway/test/kit"
)

var churnTime = flag.Duration("churn", time.Hour, "how long projects are created and deleted before the last measurement of memory")

const (
	// churnSamples is the number of measurements. The first quarter, during which caches and heaps
	// reach their size, does not count.
	churnSamples = 24
	// growthAim is the target for the growth of memory, in percent a day. peakAim is the target for
	// the peak during churn, relative to an idle cluster.
	growthAim, peakAim = 3, 1.5
)

// churnProject contains the objects of one project. Its pods start before the project is deleted.
const churnProject = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: settings}, data: {mode: first}}
- {apiVersion: v1, kind: Secret, metadata: {name: password}, stringData: {password: secret}}
- {apiVersion: image.openshift.io/v1, kind: ImageStream, metadata: {name: app}}
- apiVersion: v1
  kind: Service
  metadata: {name: app}
  spec: {selector: {app: app}, ports: [{port: 8080}]}
- apiVersion: route.openshift.io/v1
  kind: Route
  metadata: {name: app}
  spec: {to: {kind: Service, name: app}}
- apiVersion: apps.openshift.io/v1
  kind: DeploymentConfig
  metadata: {name: app}
  spec:
    replicas: 2
    selector: {app: app}
    template:
      metadata: {labels: {app: app}}
      spec:
        terminationGracePeriodSeconds: 0
        containers: [{name: main, image: %s, command: [sleep, infinity], envFrom: [{configMapRef: {name: settings}}]}]
`

// TestMemoryUnderChurn measures whether memory grows while users create, change and delete
// projects. Every sample follows a pause in which the cluster is idle. `make churn` runs the test.
func TestMemoryUnderChurn(t *testing.T) {
	r := newTable("churn")
	r.page = "benchmark.md"
	c := kit.Start(t, kit.Options{})
	leaveAlone(*idle)
	first := memory(t, c)
	var peak int64
	var proportionals, anonymous []sample
	start, projects := time.Now(), 0
	for i := range churnSamples {
		for end := start.Add(*churnTime * time.Duration(i+1) / churnSamples); time.Now().Before(end); projects++ {
			churn(c, fmt.Sprintf("churn-%d", projects))
			peak = max(peak, memory(t, c).anonymous)
		}
		leaveAlone(*idle)
		m, hours := memory(t, c), time.Since(start).Hours()
		t.Logf("after %.1f hours and %d projects: %s (PSS), %s anonymous", hours, projects, mebibytes(m.proportional), mebibytes(m.anonymous))
		if i >= churnSamples/4 {
			proportionals = append(proportionals, sample{hours, float64(m.proportional)})
			anonymous = append(anonymous, sample{hours, float64(m.anonymous)})
		}
	}
	r.add("projects created, changed and deleted in "+churnTime.String(), "%d", projects)
	r.add("idle before them: PSS, anonymous memory", "%s, %s", mebibytes(first.proportional), mebibytes(first.anonymous))
	last := len(proportionals) - 1
	r.add("idle after them: PSS, anonymous memory", "%s, %s", mebibytes(int64(proportionals[last].bytes)), mebibytes(int64(anonymous[last].bytes)))
	growth, deviation := slope(proportionals)
	r.most("growth of PSS a day", growth, growthAim, "%.1f %%")
	r.add("same, standard error", "%.1f %%", deviation)
	growth, deviation = slope(anonymous)
	r.most("growth of anonymous memory a day", growth, growthAim, "%.1f %%")
	r.add("same, standard error", "%.1f %%", deviation)
	r.most("highest anonymous memory meanwhile, relative to idle", float64(peak)/float64(first.anonymous), peakAim, "%.2f")
	r.write(t)
}

// churn creates a project, rolls out two versions of its application, and deletes the project.
func churn(c *kit.Cluster, name string) {
	c.OC("new-project", name, "--skip-config-write")
	project := c.In(name)
	project.Apply(fmt.Sprintf(churnProject, kit.ToolsImage))
	project.OC("rollout", "status", "dc/app")
	for i := range 10 {
		project.OC("patch", "configmap/settings", "-p", fmt.Sprintf(`{"data": {"mode": "%d"}}`, i))
	}
	project.OC("set", "env", "dc/app", "VERSION=2")
	project.OC("rollout", "status", "dc/app")
	project.OC("get", "all")
	c.OC("delete", "project", name)
	c.OC("wait", "--for=delete", "namespace/"+name, "--timeout=5m")
}

// sample is a measurement of memory, after a number of hours.
type sample struct{ hours, bytes float64 }

// slope fits a line to the samples by least squares. It returns the line's growth per day, as a
// percentage of the samples' mean, and the standard error in the same unit.
func slope(samples []sample) (percent, deviation float64) {
	var hours, bytes float64
	for _, s := range samples {
		hours += s.hours / float64(len(samples))
		bytes += s.bytes / float64(len(samples))
	}
	var product, square float64
	for _, s := range samples {
		product += (s.hours - hours) * (s.bytes - bytes)
		square += (s.hours - hours) * (s.hours - hours)
	}
	rate := product / square
	var residuals float64
	for _, s := range samples {
		difference := s.bytes - bytes - rate*(s.hours-hours)
		residuals += difference * difference
	}
	unit := 24 * 100 / bytes
	return rate * unit, math.Sqrt(residuals/float64(len(samples)-2)/square) * unit
}
