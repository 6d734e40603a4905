package image

import (
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	kubeappsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func pods() schema.GroupResource { return corev1.Resource("pods") }

// projects returns a namespace lister. ignored maps the names of namespaces to the execution rules
// that do not apply in them.
func projects(t *testing.T, ignored map[string]string) corelisters.NamespaceLister {
	t.Helper()
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	for name, rules := range ignored {
		if err := indexer.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{ignoreRules: rules}}}); err != nil {
			t.Fatal(err)
		}
	}
	return corelisters.NewNamespaceLister(indexer)
}

func TestExecutionRules(t *testing.T) {
	const config = `
apiVersion: v1
kind: ImagePolicyConfig
resolveImages: AttemptRewrite
executionRules:
- name: execution-denied
  onResources: [{resource: pods}, {resource: builds}]
  reject: true
  matchImageAnnotations: [{key: images.openshift.io/deny-execution, value: "true"}]
  skipOnResolutionFailure: true
- name: always-denied
  ignoreNamespaceOverride: true
  reject: true
  matchRegistries: [bad.example.com]
- name: allow-integrated
  matchIntegratedRegistry: true
- name: allow-example
  matchRegistries: [registry.example.com]
- name: allow-labeled
  onResources: [{resource: pods}]
  matchDockerImageLabels: [{key: vendor, set: true}]
`
	read, err := readPolicy(strings.NewReader(config))
	if err != nil {
		t.Fatal(err)
	}
	image := func(annotations map[string]string, metadata string) *imagev1.Image {
		return &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}, DockerImageMetadata: runtime.RawExtension{Raw: []byte(metadata)}}
	}
	denied := map[string]string{denyExecution: "true"}
	for name, tt := range map[string]struct {
		candidate candidate
		want      string
	}{
		"of an allowed registry":            {candidate{registry: "registry.example.com"}, ""},
		"of another registry":               {candidate{registry: "other.example.com"}, "no rule accepts"},
		"without a registry":                {candidate{}, "no rule accepts"},
		"of the cluster's registry":         {candidate{registry: "r:5000", integrated: true}, ""},
		"with deny-execution":               {candidate{integrated: true, image: image(denied, "")}, `rule "execution-denied" rejects`},
		"without deny-execution":            {candidate{integrated: true, image: image(map[string]string{denyExecution: "false"}, "")}, ""},
		"with deny-execution, rule ignored": {candidate{integrated: true, image: image(denied, ""), ignored: []string{"execution-denied"}}, ""},
		"all accepting rules ignored":       {candidate{ignored: []string{"allow-integrated", "allow-example", "allow-labeled"}}, ""},
		"rule that cannot be ignored":       {candidate{registry: "bad.example.com", ignored: []string{"always-denied"}}, `rule "always-denied" rejects`},
		"with a label":                      {candidate{image: image(nil, `{"Config":{"Labels":{"vendor":""}}}`)}, ""},
		"without the label":                 {candidate{image: image(nil, `{"Config":{}}`)}, "no rule accepts"},
	} {
		if got := read.decide(pods(), tt.candidate); (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	if got := read.decide(buildv1.Resource("builds"), candidate{}); got != "" {
		t.Errorf("a build: %q", got)
	}
	if got := read.decide(buildv1.Resource("builds"), candidate{image: image(denied, "")}); got == "" {
		t.Error("a build of an image with the annotation deny-execution is allowed")
	}
}

func TestPolicyAppliesToImagesOfBuilds(t *testing.T) {
	plugin, err := newPolicy(Options{}, nil, strings.NewReader(`
kind: ImagePolicyConfig
executionRules: [{name: no-bad, onResources: [{resource: builds}], reject: true, matchRegistries: [bad.example.com]}]`))
	if err != nil {
		t.Fatal(err)
	}
	plugin.namespaces = projects(t, map[string]string{"shop": ""})
	from := func(registry string) corev1.ObjectReference {
		return corev1.ObjectReference{Kind: dockerKind, Name: registry + ".example.com/app"}
	}
	build := func(strategy buildv1.BuildStrategy, sources ...corev1.ObjectReference) *buildv1.Build {
		build := &buildv1.Build{}
		build.Spec.Strategy = strategy
		for _, source := range sources {
			build.Spec.Source.Images = append(build.Spec.Source.Images, buildv1.ImageSource{From: source})
		}
		return build
	}
	bad := from("bad")
	docker := buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{From: &bad}}
	for name, tt := range map[string]struct {
		old, now *buildv1.Build
		allowed  bool
	}{
		"a Dockerfile's":      {nil, build(docker), false},
		"a Dockerfile's own":  {nil, build(buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{}}), true},
		"builder image":       {nil, build(buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: bad}}), false},
		"a custom builder":    {nil, build(buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: bad}}), false},
		"another":             {nil, build(buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: from("good")}}), true},
		"image source":        {nil, build(buildv1.BuildStrategy{}, from("good"), bad), false},
		"second image source": {nil, build(buildv1.BuildStrategy{}, from("good")), true},
		"used before":         {build(docker), build(docker), true},
	} {
		var old runtime.Object
		operation := admission.Create
		if tt.old != nil {
			old, operation = tt.old, admission.Update
		}
		attributes := admission.NewAttributesRecord(tt.now, old, buildv1.GroupVersion.WithKind("Build"), "shop", "app-1",
			buildv1.GroupVersion.WithResource("builds"), "", operation, nil, false, nil)
		if err := plugin.Validate(t.Context(), attributes, nil); (err == nil) != tt.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestDefaultPolicyRejectsMarkedImages(t *testing.T) {
	read, err := readPolicy(nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := read.decide(pods(), candidate{name: "any"}); got != "" {
		t.Error(got)
	}
	image := &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{denyExecution: "true"}}}
	if got := read.decide(pods(), candidate{name: "any", image: image}); got == "" {
		t.Error("an image with the annotation deny-execution can run")
	}
	if rule := read.rule(pods()); !rule.LocalNames || rule.Policy != doNotAttempt {
		t.Errorf("names in pods: %+v", rule)
	}
	if rule := read.rule(schema.GroupResource{Resource: "services"}); rule.LocalNames {
		t.Errorf("names in services: %+v", rule)
	}
}

func TestPolicyAppliesToEphemeralContainers(t *testing.T) {
	plugin, err := newPolicy(Options{}, nil, strings.NewReader(`
kind: ImagePolicyConfig
executionRules:
- {name: allow-example, onResources: [{resource: pods}], matchRegistries: [registry.example.com]}
- {onResources: [{resource: pods}], reject: true, matchRegistries: [bad.example.com]}`))
	if err != nil {
		t.Fatal(err)
	}
	plugin.namespaces = projects(t, map[string]string{"shop": "", "free": "other,allow-example,"})
	pod := func(images ...string) *corev1.Pod {
		pod := &corev1.Pod{}
		for i, image := range images {
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
				EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: string(rune('a' + i)), Image: image},
			})
		}
		return pod
	}
	for name, tt := range map[string]struct {
		project  string
		old, now *corev1.Pod
		allowed  bool
	}{
		"of an allowed registry":      {"shop", pod(), pod("registry.example.com/tools"), true},
		"of another registry":         {"shop", pod(), pod("other.example.com/tools"), false},
		"rule ignored":                {"free", pod(), pod("other.example.com/tools"), true},
		"rejected without a name":     {"free", pod(), pod("bad.example.com/tools"), false},
		"missing project":             {"none", pod(), pod("other.example.com/tools"), false},
		"used before":                 {"shop", pod("other.example.com/tools"), pod("other.example.com/tools", "registry.example.com/tools"), true},
		"existing container, changed": {"shop", pod("other.example.com/tools"), pod("other.example.com/more"), false},
	} {
		attributes := admission.NewAttributesRecord(tt.now, tt.old, corev1.SchemeGroupVersion.WithKind("Pod"), tt.project, "web",
			corev1.SchemeGroupVersion.WithResource("pods"), "ephemeralcontainers", admission.Update, &metav1.UpdateOptions{}, false, nil)
		if err := plugin.Validate(t.Context(), attributes, nil); (err == nil) != tt.allowed {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestPolicySkipsOnlyMirrorPods(t *testing.T) {
	plugin, err := newPolicy(Options{}, nil, strings.NewReader(`
kind: ImagePolicyConfig
executionRules: [{name: no-bad, onResources: [{resource: pods}, {group: apps, resource: deployments}], reject: true, matchRegistries: [bad.example.com]}]`))
	if err != nil {
		t.Fatal(err)
	}
	plugin.namespaces = projects(t, map[string]string{"shop": ""})
	mirrored := metav1.ObjectMeta{Name: "web", Annotations: map[string]string{corev1.MirrorPodAnnotationKey: "a"}}
	spec := corev1.PodSpec{NodeName: "one", Containers: []corev1.Container{{Name: "web", Image: "bad.example.com/web"}}}
	node := &user.DefaultInfo{Name: "system:node:one", Groups: []string{user.NodesGroup}}
	for kind, tt := range map[string]struct {
		object   runtime.Object
		resource schema.GroupVersionResource
		user     user.Info
		allowed  bool
	}{
		"pod":           {&corev1.Pod{ObjectMeta: mirrored, Spec: spec}, corev1.SchemeGroupVersion.WithResource("pods"), node, true},
		"pod of a user": {&corev1.Pod{ObjectMeta: mirrored, Spec: spec}, corev1.SchemeGroupVersion.WithResource("pods"), &user.DefaultInfo{Name: "alice"}, false},
		"deployment": {&kubeappsv1.Deployment{ObjectMeta: mirrored, Spec: kubeappsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{Spec: spec}}},
			kubeappsv1.SchemeGroupVersion.WithResource("deployments"), node, false},
	} {
		attributes := admission.NewAttributesRecord(tt.object, nil, schema.GroupVersionKind{}, "shop", "web", tt.resource, "", admission.Create, &metav1.CreateOptions{}, false, tt.user)
		if err := plugin.Validate(t.Context(), attributes, nil); (err == nil) != tt.allowed {
			t.Errorf("a %s with the annotation of mirror pods: %v", kind, err)
		}
	}
}

func TestNamesInBuildsAreResolvedIfRuleApplies(t *testing.T) {
	for config, want := range map[string]resolution{
		"resolveImages: Required\nexecutionRules: [{name: a}]":                                                               doNotAttempt,
		"resolveImages: Required\nexecutionRules: [{name: a, onResources: [{resource: builds}]}]":                            required,
		"resolveImages: Required\nexecutionRules: [{name: a, onResources: [{group: build.openshift.io, resource: builds}]}]": required,
		"resolutionRules: [{targetResource: {resource: builds}, policy: Attempt}]":                                           attempt,
	} {
		read, err := readPolicy(strings.NewReader("kind: ImagePolicyConfig\n" + config))
		if err != nil {
			t.Fatal(err)
		}
		if got := read.rule(buildv1.Resource("builds")); got.Policy != want {
			t.Errorf("%s: %+v", config, got)
		}
	}
}

func TestInvalidPolicyIsRejected(t *testing.T) {
	for _, config := range []string{
		"kind: ImagePolicyConfig\nresolveImages: Always", "kind: ImagePolicyConfig\nexecutionRule: []",
		"kind: ImagePolicyConfig\nexecutionRules: [{name: a, matchImageLabels: [{matchExpressions: [{key: a, operator: Near}]}]}]",
	} {
		if _, err := readPolicy(strings.NewReader(config)); err == nil {
			t.Errorf("%q is accepted", config)
		}
	}
}
