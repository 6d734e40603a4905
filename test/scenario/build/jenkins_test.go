package build

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildclient "github.com/openshift/client-go/build/clientset/versioned/typed/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// syncPlugin sends the same requests as Jenkins' sync plugin, which runs a project's pipelines as
// Jenkins jobs. It uses the service account from the jenkins-ephemeral template.
//
// Source: github.com/openshift/jenkins-sync-plugin, classes BuildManager, JenkinsUtils,
// BuildDecisionHandler, BuildSyncRunListener and PipelineJobListener.
type syncPlugin struct {
	t       *testing.T
	config  *rest.Config
	builds  buildclient.BuildInterface
	configs buildclient.BuildConfigInterface
	events  <-chan watch.Event // events of the project's builds
}

func newSyncPlugin(p *project) *syncPlugin {
	p.t.Helper()
	p.Apply(p.OC("process", "openshift//jenkins-ephemeral", "-o", "yaml"))
	config := rest.AnonymousClientConfig(p.Config)
	config.Dial, config.QPS, config.BearerToken = p.Config.Dial, -1, strings.TrimSpace(p.OC("create", "token", "jenkins"))
	client, err := buildclient.NewForConfig(config)
	if err != nil {
		p.t.Fatal(err)
	}
	s := &syncPlugin{t: p.t, config: config, builds: client.Builds(p.Namespace), configs: client.BuildConfigs(p.Namespace)}
	s.events = s.watch(s.builds.Watch, metav1.ListOptions{})
	return s
}

// watch watches objects until the test ends.
func (s *syncPlugin) watch(open func(context.Context, metav1.ListOptions) (watch.Interface, error), options metav1.ListOptions) <-chan watch.Event {
	s.t.Helper()
	events, err := open(s.t.Context(), options)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(events.Stop)
	return events.ResultChan()
}

// objects watches the project's objects of any kind.
func (s *syncPlugin) objects(namespace string, resource schema.GroupVersionResource, options metav1.ListOptions) <-chan watch.Event {
	s.t.Helper()
	client, err := dynamic.NewForConfig(s.config)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.watch(client.Resource(resource).Namespace(namespace).Watch, options)
}

func anyObject(*unstructured.Unstructured) bool { return true }

// await waits for an event that has the given type and name and whose object accept accepts. It
// returns the object.
func await[T metav1.Object](t *testing.T, events <-chan watch.Event, kind watch.EventType, name string, accepts func(T) bool) T {
	t.Helper()
	for deadline := time.After(time.Minute); ; {
		select {
		case event, ok := <-events:
			if !ok {
				t.Fatalf("the watch ended before %q was %s", name, kind)
			}
			object, ok := event.Object.(T)
			if ok && event.Type == kind && object.GetName() == name && (accepts == nil || accepts(object)) {
				return object
			}
		case <-deadline:
			t.Fatalf("no event reports that %q was %s", name, kind)
		}
	}
}

// operation is an operation in a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// edit changes a build with a JSON patch of the build itself, as the plugin does.
func (s *syncPlugin) edit(build string, operations ...operation) error {
	s.t.Helper()
	patch, err := json.Marshal(operations)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.builds.Patch(s.t.Context(), build, types.JSONPatchType, patch, metav1.PatchOptions{})
	return err
}

func phase(phase buildv1.BuildPhase) operation {
	return operation{"replace", "/status/phase", phase}
}

// report writes a run's state to its build. Like the plugin, it replaces all annotations.
func (s *syncPlugin) report(build string, to buildv1.BuildPhase, end string) {
	s.t.Helper()
	current, err := s.builds.Get(s.t.Context(), build, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	var operations []operation
	for name := range current.Annotations {
		operations = append(operations, operation{"remove", "/metadata/annotations/" + strings.ReplaceAll(name, "/", "~1"), nil})
	}
	for name, value := range map[string]string{
		"status-json": `{"name":"#1","status":"IN_PROGRESS","stages":[{"id":"6","name":"Test","status":"SUCCESS"}]}`,
		"build-uri":   "https://jenkins.example.com/job/app/1/", "log-url": "https://jenkins.example.com/job/app/1/consoleText",
		"console-log-url": "https://jenkins.example.com/job/app/1/console", "namespace": current.Namespace,
	} {
		operations = append(operations, operation{"add", "/metadata/annotations/openshift.io~1jenkins-" + name, value})
	}
	operations = append(operations, phase(to), operation{"add", "/status/startTimestamp", "2026-01-02T03:04:05Z"})
	if end != "" {
		operations = append(operations, operation{"add", "/status/completionTimestamp", end})
	}
	if err := s.edit(build, operations...); err != nil {
		s.t.Fatalf("report %s of %s: %v", to, build, err)
	}
}

// queue returns the names of a configuration's new builds.
func (s *syncPlugin) queue(config string) (names []string) {
	s.t.Helper()
	builds, err := s.builds.List(s.t.Context(), metav1.ListOptions{FieldSelector: "status=New", LabelSelector: "openshift.io/build-config.name=" + config})
	if err != nil {
		s.t.Fatal(err)
	}
	for i := range builds.Items {
		names = append(names, builds.Items[i].Name)
	}
	return names
}

func TestJenkinsSyncPluginRunsPipelines(t *testing.T) {
	p := newProject(t)
	s := newSyncPlugin(p)
	configs := s.watch(s.configs.Watch, metav1.ListOptions{})
	p.OC("create", "secret", "generic", "git", "--type=kubernetes.io/basic-auth", "--from-literal=username=ann", "--from-literal=password=secret-word")
	p.Apply(`{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app, annotations: {jenkins.openshift.io/autostart: "true"}}, spec: {
		successfulBuildsHistoryLimit: 1, source: {git: {uri: "https://git.example.com/app.git", ref: main}, contextDir: web, sourceSecret: {name: git}},
		strategy: {jenkinsPipelineStrategy: {jenkinsfilePath: ci/Jenkinsfile, env: [{name: COLOR, value: red}]}}}}`)
	config := await[*buildv1.BuildConfig](t, configs, watch.Added, "app", nil)
	if spec := config.Spec; spec.Strategy.Type != buildv1.JenkinsPipelineBuildStrategyType || spec.RunPolicy != buildv1.BuildRunPolicySerial || spec.Source.Type != buildv1.BuildSourceGit ||
		spec.Source.SourceSecret.Name != "git" || config.Annotations["jenkins.openshift.io/autostart"] != "true" {
		t.Errorf("the configuration is %+v", config)
	}

	p.OC("start-build", "app", "--env=WHO=ann", "--commit=4b825dc642cb6eb9a060e54bf8d69288fbee4904")
	first := await[*buildv1.Build](t, s.events, watch.Added, "app-1", nil)
	if first.Status.Phase != buildv1.BuildPhaseNew || first.Spec.Strategy.Type != buildv1.JenkinsPipelineBuildStrategyType || first.Status.Config.Name != "app" ||
		first.Annotations["openshift.io/build.number"] != "1" || first.Labels["openshift.io/build-config.name"] != "app" || first.Labels["openshift.io/build.start-policy"] != "Serial" ||
		first.OwnerReferences[0].Kind != "BuildConfig" || first.OwnerReferences[0].UID != config.UID ||
		first.Spec.Source.Git.URI != "https://git.example.com/app.git" || first.Spec.Revision.Git.Commit != "4b825dc642cb6eb9a060e54bf8d69288fbee4904" ||
		first.Spec.TriggeredBy[0].Message != "Manually triggered" {
		t.Errorf("the build is %+v", first)
	}
	if env := first.Spec.Strategy.JenkinsPipelineStrategy.Env; !slices.Contains(env, corev1.EnvVar{Name: "COLOR", Value: "red"}) || !slices.Contains(env, corev1.EnvVar{Name: "WHO", Value: "ann"}) {
		t.Errorf("the parameters of the run are %v", env)
	}
	// If a user starts the job in Jenkins, the plugin creates a build, and the build starts the
	// run.
	triggered, err := s.configs.Instantiate(t.Context(), "app", &buildv1.BuildRequest{ObjectMeta: metav1.ObjectMeta{Name: "app"},
		TriggeredBy: []buildv1.BuildTriggerCause{{Message: "Triggered by Jenkins job at https://jenkins.example.com/job/app"}}}, metav1.CreateOptions{})
	if err != nil || triggered.Name != "app-2" || triggered.Spec.TriggeredBy[0].Message != "Triggered by Jenkins job at https://jenkins.example.com/job/app" {
		t.Fatalf("the build that Jenkins starts is %+v: %v", triggered, err)
	}

	if err := s.edit("app-1", phase(buildv1.BuildPhasePending)); err != nil {
		t.Fatal(err)
	}
	if got := s.queue("app"); !slices.Equal(got, []string{"app-2"}) {
		t.Errorf("the new builds are %q", got)
	}
	s.report("app-1", buildv1.BuildPhaseRunning, "")
	await(t, s.events, watch.Modified, "app-1", func(build *buildv1.Build) bool { return build.Status.Phase == buildv1.BuildPhaseRunning })
	if got := strings.Join(p.stages("app-1"), ", "); got != "Test SUCCESS" {
		t.Errorf("the stages are %s", got)
	}
	if _, err := p.TryOC("logs", "build/app-1"); err == nil || !strings.Contains(err.Error(), "https://jenkins.example.com/job/app/1/console") {
		t.Errorf("oc logs prints %v", err)
	}
	s.report("app-1", buildv1.BuildPhaseComplete, "2026-01-02T03:05:05Z")
	// If the build of a run has ended, the API server must return the error code that makes the
	// plugin stop polling the run.
	if err := s.edit("app-1", phase(buildv1.BuildPhaseRunning)); !apierrors.IsInvalid(err) {
		t.Errorf("a finished build that runs again returns %v", err)
	}

	// A canceled run keeps its phase until Jenkins has stopped the run.
	s.report("app-2", buildv1.BuildPhaseRunning, "")
	cancel := p.StartOC("cancel-build", "app-2")
	canceled := await(t, s.events, watch.Modified, "app-2", func(build *buildv1.Build) bool { return build.Status.Cancelled })
	if canceled.Status.Phase != buildv1.BuildPhaseRunning {
		t.Errorf("the canceled run has the phase %s", canceled.Status.Phase)
	}
	s.report("app-2", buildv1.BuildPhaseCancelled, "2026-01-02T03:06:05Z")
	if out, err := io.ReadAll(cancel); err != nil || !strings.Contains(string(out), "app-2 cancelled") {
		t.Errorf("oc cancel-build prints %s: %v", out, err)
	}

	// The history limits must apply to the builds. The plugin deletes the run of a deleted build,
	// so it must receive the event.
	p.OC("start-build", "app")
	s.report("app-3", buildv1.BuildPhaseRunning, "")
	s.report("app-3", buildv1.BuildPhaseComplete, "2026-01-02T03:07:05Z")
	if deleted := await[*buildv1.Build](t, s.events, watch.Deleted, "app-1", nil); deleted.OwnerReferences[0].UID != config.UID {
		t.Errorf("the owner of the deleted build is %+v", deleted.OwnerReferences)
	}
	if got := p.OC("get", "pods", "-o", "name"); got != "" {
		t.Errorf("the builds of Jenkins have the pods %s", got)
	}
	p.OC("delete", "bc/app")
	await[*buildv1.BuildConfig](t, configs, watch.Deleted, "app", nil)
}

func TestJenkinsSyncPluginAppliesRunPolicy(t *testing.T) {
	p := newProject(t)
	s := newSyncPlugin(p)
	// If a user creates or edits a job in Jenkins, the plugin creates or updates a BuildConfig for
	// the job.
	config, err := s.configs.Create(t.Context(), &buildv1.BuildConfig{
		ObjectMeta: metav1.ObjectMeta{Name: "app", Annotations: map[string]string{"jenkins.openshift.io/generated-by": "jenkins", "jenkins.openshift.io/job-path": p.Namespace + "/app"}},
		Spec: buildv1.BuildConfigSpec{CommonSpec: buildv1.CommonSpec{Strategy: buildv1.BuildStrategy{
			Type: buildv1.JenkinsPipelineBuildStrategyType, JenkinsPipelineStrategy: &buildv1.JenkinsPipelineBuildStrategy{Jenkinsfile: "node { }"},
		}}},
	}, metav1.CreateOptions{})
	if err == nil {
		config.Spec.Strategy.JenkinsPipelineStrategy.Jenkinsfile, config.Spec.RunPolicy = "node { sh 'make' }", buildv1.BuildRunPolicySerialLatestOnly
		_, err = s.configs.Update(t.Context(), config, metav1.UpdateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		p.OC("start-build", "app")
	}
	await[*buildv1.Build](t, s.events, watch.Added, "app-3", nil)
	if got := s.queue("app"); !slices.Equal(got, []string{"app-1", "app-2", "app-3"}) {
		t.Fatalf("the new builds are %q", got)
	}
	for _, older := range []string{"app-1", "app-2"} {
		if err := s.edit(older, phase(buildv1.BuildPhaseCancelled)); err != nil {
			t.Fatal(err)
		}
		build := await(t, s.events, watch.Modified, older, func(build *buildv1.Build) bool { return build.Status.Phase == buildv1.BuildPhaseCancelled })
		if build.Status.Cancelled {
			t.Errorf("%s was canceled by Slipway, not by Jenkins", older)
		}
	}
	s.report("app-3", buildv1.BuildPhaseRunning, "")
	s.report("app-3", buildv1.BuildPhaseFailed, "2026-01-02T03:05:05Z")
	p.waitPhase("app-3", "Failed")
	// A user can cancel a build without Jenkins if no run has started for the build.
	p.OC("start-build", "app")
	p.OC("cancel-build", "app-4")
	p.waitPhase("app-4", "Cancelled")
	if err := s.configs.Delete(t.Context(), "app", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestJenkinsSyncPluginFindsCredentialsAndAgents(t *testing.T) {
	p := newProject(t)
	s := newSyncPlugin(p)
	agents := metav1.ListOptions{LabelSelector: "role in (jenkins-slave, jenkins-agent)"}
	secrets := s.objects(p.Namespace, corev1.SchemeGroupVersion.WithResource("secrets"), metav1.ListOptions{LabelSelector: "credential.sync.jenkins.openshift.io=true"})
	templates := s.objects(p.Namespace, corev1.SchemeGroupVersion.WithResource("configmaps"), agents)
	streams := s.objects(p.Namespace, imagev1.GroupVersion.WithResource("imagestreams"), agents)
	for _, args := range [][]string{
		{"login", "--type=kubernetes.io/basic-auth", "--from-literal=username=ann", "--from-literal=password=secret-word"},
		{"key", "--type=kubernetes.io/ssh-auth", "--from-literal=ssh-privatekey=key"},
		{"token", "--from-literal=openshift-client-token=abc"},
	} {
		p.OC(append([]string{"create", "secret", "generic"}, args...)...)
		p.OC("annotate", "secret/"+args[0], "jenkins.openshift.io/secret.name=deploy")
		p.OC("label", "secret/"+args[0], "credential.sync.jenkins.openshift.io=true")
		secret := await(t, secrets, watch.Added, args[0], anyObject)
		kind, data := fmt.Sprint(secret.Object["type"]), secret.Object["data"].(map[string]any)
		key, _, _ := strings.Cut(strings.TrimPrefix(args[len(args)-1], "--from-literal="), "=")
		if want := strings.TrimPrefix(args[1], "--type="); len(args) > 2 && kind != want || len(args) == 2 && kind != "Opaque" || data[key] == nil || secret.GetAnnotations()["jenkins.openshift.io/secret.name"] != "deploy" {
			t.Errorf("the secret is %v", secret.Object)
		}
	}
	p.OC("label", "secret/login", "credential.sync.jenkins.openshift.io-")
	await(t, secrets, watch.Deleted, "login", anyObject)

	p.Apply(`{apiVersion: v1, kind: ConfigMap, metadata: {name: pods, labels: {role: jenkins-agent}}, data: {maven: <org.csanchez.jenkins.plugins.kubernetes.PodTemplate/>}}`)
	await(t, templates, watch.Added, "pods", anyObject)
	p.OC("tag", "builder:latest", "agent:stable")
	p.OC("label", "is/agent", "role=jenkins-slave")
	stream := await(t, streams, watch.Added, "agent", anyObject)
	repository := "docker-registry.default.svc:5000/" + p.Namespace + "/agent"
	if status := stream.Object["status"].(map[string]any); status["dockerImageRepository"] != repository {
		t.Errorf("the status of the stream is %v", status)
	}
	// A tag inherits its stream's labels, and can have its own annotations.
	p.OC("annotate", "istag/agent:stable", "slave-label=tools")
	got := p.OC("get", "istag/agent:stable", "-o", "jsonpath={.metadata.labels.role} {.metadata.annotations.slave-label} {.image.dockerImageReference}", "--as=system:serviceaccount:"+p.Namespace+":jenkins")
	if !strings.HasPrefix(got, "jenkins-slave tools ") || !strings.Contains(got, "@sha256:") {
		t.Errorf("the tag is %s", got)
	}
	p.OC("label", "is/agent", "role-")
	await(t, streams, watch.Deleted, "agent", anyObject)
}
