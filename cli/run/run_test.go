package run

import (
	"strings"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
	"k8s.io/kubectl/pkg/scheme"
)

// newRequest parses a command line.
func newRequest(t *testing.T, args ...string) (*request, error) {
	t.Helper()
	command := New(util.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.NewTestIOStreamsDiscard())
	w := &request{command: command}
	if err := command.ParseFlags(append([]string{"--image=tool:1"}, args...)); err != nil {
		t.Fatal(err)
	}
	flags := command.Flags()
	w.generator, w.schedule = util.GetFlagString(command, "generator"), util.GetFlagString(command, "schedule")
	w.replicas, _ = flags.GetInt32("replicas")
	if err := w.choose(); err != nil {
		return nil, err
	}
	return w, w.read(flags.Args())
}

func TestGeneratorsCreateObjects(t *testing.T) {
	for line, want := range map[string]string{
		"web":                                     configGenerator,
		"web --restart=Never":                     podGenerator,
		"web -i":                                  podGenerator,
		"web --restart=OnFailure":                 jobGenerator,
		"web --schedule=@daily":                   cronGenerator,
		"web --generator=job/v1":                  jobGenerator,
		"web --generator=run-pod/v1":              podGenerator,
		"web --replicas=2 --expose=true":          "--port",
		"web --generator=run/v1":                  controllerGenerator,
		"web --generator=run-controller/v1 -r 2":  controllerGenerator,
		"web --generator=deployment/v1beta1":      deploymentGenerator,
		"web --generator=service/v1":              "must be one of",
		"web --generator=cronjob/v1":              "--schedule",
		"web --replicas=2 -i":                     "--replicas",
		"web --generator=job/v1 -i":               jobGenerator,
		"web --rm":                                "attach",
		"web -t --generator=job/v1":               "also set -i",
		"web --schedule=@daily -i":                "start later",
		"web --generator=deploymentconfig/v1 -it": configGenerator,
		"web --generator=deploymentconfig/v1 --attach --replicas=2":     "more than one pod",
		"web --generator=deploymentconfig/v1 --attach --dry-run=client": "--dry-run",
		"web --env=A":     "NAME=VALUE",
		"web --port=http": "number",
		"--replicas=2":    "NAME is required",
		"web --generator=deploymentconfig/v1 --restart=Never": "always restarted",
	} {
		w, err := newRequest(t, strings.Fields(line)...)
		if err != nil && !strings.Contains(err.Error(), want) || err == nil && w.generator != want {
			t.Errorf("%s: %+v, %v, want %s", line, w, err, want)
		}
	}
}

func TestOldGeneratorsCreateReplicatedPods(t *testing.T) {
	for generator, want := range map[string]string{"run/v1": "v1 ReplicationController", "deployment/apps.v1": "apps/v1 Deployment"} {
		w, err := newRequest(t, "web", "--generator="+generator, "--replicas=3")
		if err != nil {
			t.Fatal(err)
		}
		objects, err := w.objects()
		if err != nil || len(objects) != 1 {
			t.Fatalf("%v, %v", objects, err)
		}
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(objects[0])
		if err != nil {
			t.Fatal(err)
		}
		version, kind := objects[0].GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
		replicas, _, _ := unstructured.NestedInt64(content, "spec", "replicas")
		label, _, _ := unstructured.NestedString(content, "spec", "template", "metadata", "labels", "run")
		if version+" "+kind != want || replicas != 3 || label != "web" {
			t.Errorf("%s creates %s %s: %v", generator, version, kind, content)
		}
	}
}

func TestRunCreatesDeploymentConfigAndService(t *testing.T) {
	if err := appsv1.Install(scheme.Scheme); err != nil { // the client does this when it starts
		t.Fatal(err)
	}
	w, err := newRequest(t, "web", "--replicas=3", "--port=8080", "--expose", "--env=A=b=c", "-l", "app=shop,part=web", `--overrides={"spec":{"paused":true}}`, "--", "serve", "-v")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := w.objects()
	if err != nil || len(objects) != 2 {
		t.Fatalf("%v, %v", objects, err)
	}
	dc, service := objects[0].(*appsv1.DeploymentConfig), objects[1].(*corev1.Service)
	container := dc.Spec.Template.Spec.Containers[0]
	if dc.Name != "web" || dc.Spec.Replicas != 3 || !dc.Spec.Paused || dc.Spec.Selector["part"] != "web" || dc.Spec.Template.Labels["app"] != "shop" {
		t.Errorf("created %+v", dc)
	}
	if container.Image != "tool:1" || strings.Join(container.Args, " ") != "serve -v" || container.Env[0].Value != "b=c" || container.Ports[0].ContainerPort != 8080 {
		t.Errorf("its container is %+v", container)
	}
	if service.Spec.Selector["app"] != "shop" || service.Spec.Ports[0].TargetPort.IntVal != 8080 {
		t.Errorf("its service is %+v", service.Spec)
	}
}

func TestJobsHaveLimitedRestarts(t *testing.T) {
	for line, want := range map[string]corev1.RestartPolicy{"once --generator=job/v1": "OnFailure", "once --generator=job/v1 --restart=Never": "Never"} {
		w, err := newRequest(t, strings.Fields(line)...)
		if err != nil {
			t.Fatal(err)
		}
		objects, err := w.objects()
		if err != nil {
			t.Fatal(err)
		}
		if job := objects[0].(*batchv1.Job); job.Spec.Template.Spec.RestartPolicy != want || job.Spec.Template.Labels["run"] != "once" {
			t.Errorf("%s: created %+v", line, job.Spec.Template)
		}
	}
	w, err := newRequest(t, "nightly", "--schedule=@daily")
	if err != nil {
		t.Fatal(err)
	}
	objects, err := w.objects()
	if cron := objects[0].(*batchv1.CronJob); err != nil || cron.Spec.Schedule != "@daily" || cron.Spec.JobTemplate.Spec.Template.Spec.RestartPolicy != "OnFailure" {
		t.Errorf("created %+v, %v", cron, err)
	}
}

func TestPodsHaveTheFieldsOfOpenShiftsFlags(t *testing.T) {
	pod := corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}
	p := podFlags{limits: "cpu=200m,memory=1Gi", requests: "cpu=100m", account: "robot", hostPort: 8080}
	if err := p.apply(&pod); err != nil {
		t.Fatal(err)
	}
	container := pod.Containers[0]
	if container.Resources.Limits.Cpu().String() != "200m" || container.Resources.Limits.Memory().String() != "1Gi" || container.Resources.Requests.Cpu().String() != "100m" {
		t.Errorf("resources %+v", container.Resources)
	}
	if pod.ServiceAccountName != "robot" || container.Ports[0].HostPort != 8080 {
		t.Errorf("account %q, ports %+v", pod.ServiceAccountName, container.Ports)
	}
	command := New(util.NewFactory(genericclioptions.NewConfigFlags(true)), genericiooptions.NewTestIOStreamsDiscard())
	if err := p.overrides(command, pod); err != nil {
		t.Fatal(err)
	}
	const want = `{"apiVersion":"v1","spec":{"containers":[{"name":"web","ports":[{"hostPort":8080,"containerPort":80}],` +
		`"resources":{"limits":{"cpu":"200m","memory":"1Gi"},"requests":{"cpu":"100m"}}}],"serviceAccountName":"robot"}}`
	if got := util.GetFlagString(command, "overrides"); got != want || util.GetFlagString(command, "override-type") != "strategic" {
		t.Errorf("overrides %s", got)
	}
	if err := p.overrides(command, pod); err == nil || !strings.Contains(err.Error(), "cannot be used with --overrides") {
		t.Errorf("a second patch: %v", err)
	}
	for want, p := range map[string]podFlags{"--limits": {limits: "cpu"}, "--requests": {requests: "=1"}, "needs --port": {hostPort: 1}} {
		if err := p.apply(&corev1.PodSpec{Containers: make([]corev1.Container, 1)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}
