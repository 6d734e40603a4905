package buildcontroller

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	buildlisters "github.com/openshift/client-go/build/listers/build/v1"
	imagelisters "github.com/openshift/client-go/image/listers/image/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

// newPodFactory returns a factory whose caches contain the "app" stream, and a service account with
// credentials for the registry.
func newPodFactory(t *testing.T) *podFactory {
	t.Helper()
	streams := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	stream.Status.DockerImageRepository = "registry:5000/shop/app"
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "base", Items: []imagev1.TagEvent{{Image: "sha256:1", DockerImageReference: "registry:5000/shop/app@sha256:1"}}}}
	if err := streams.Add(stream); err != nil {
		t.Fatal(err)
	}
	objects := []runtime.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "builder"}, Secrets: []corev1.ObjectReference{{Name: "gone"}, {Name: "token"}, {Name: "credentials"}}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "token"}, Type: corev1.SecretTypeServiceAccountToken},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "credentials"}, Type: corev1.SecretTypeDockercfg,
			Data: map[string][]byte{corev1.DockerConfigKey: []byte(`{"registry:5000": {"username": "a", "password": "b"}}`)}},
	}
	kube := fake.NewClientset(objects...)
	return &podFactory{
		&Controllers{Image: "builder:1", Version: "v1", JenkinsService: "jenkins", Settings: NewSettingsStore(&Settings{})}, kube.CoreV1(), kube.CoreV1(),
		imagelisters.NewImageStreamLister(streams), buildlisters.NewBuildConfigLister(cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)), streamAccess{kube.AuthorizationV1()},
	}
}

func build() *buildv1.Build {
	build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-1", UID: "uid"}}
	build.Spec.Source = buildv1.BuildSource{
		Git: &buildv1.GitBuildSource{URI: "https://git.example.com/app.git", Ref: "main"}, ContextDir: "src",
		Secrets: []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "npm"}}},
	}
	build.Spec.Strategy.DockerStrategy = &buildv1.DockerBuildStrategy{
		From: &corev1.ObjectReference{Kind: "DockerImage", Name: "registry:5000/shop/base:1"},
		Env:  []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "evil.so"}, {Name: "HTTP_PROXY", Value: "http://proxy"}, {Name: "BUILD", Value: "forged"}},
	}
	build.Spec.Output.To = &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:latest"}
	return build
}

func TestPodOfBuild(t *testing.T) {
	pod, output, err := newPodFactory(t).pod(t.Context(), build())
	if err != nil {
		t.Fatal(err)
	}
	container := pod.Spec.Containers[0]
	if output != "registry:5000/shop/app:latest" || pod.Name != "app-1-build" || container.Name != "docker-build" || container.Image != "builder:1" ||
		pod.Spec.ServiceAccountName != "builder" || pod.Annotations[buildv1.BuildAnnotation] != "app-1" || !metav1.IsControlledBy(pod, build()) {
		t.Errorf("output %q, pod %+v", output, pod)
	}
	if pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("restart policy %q, want a pod that runs once", pod.Spec.RestartPolicy)
	}
	env := map[string]string{}
	for _, v := range container.Env {
		env[v.Name] = v.Value
	}
	for name, want := range map[string]string{
		"SOURCE_URI": "https://git.example.com/app.git", "SOURCE_REF": "main", "SOURCE_CONTEXT_DIR": "src", "OUTPUT_REGISTRY": "registry:5000",
		"OUTPUT_IMAGE": "shop/app:latest", "PUSH_DOCKERCFG_PATH": pushDir, "PULL_DOCKERCFG_PATH": pullDir, "HTTP_PROXY": "http://proxy", "LD_PRELOAD": "",
	} {
		if env[name] != want {
			t.Errorf("%s is %q, want %q", name, env[name], want)
		}
	}
	buildForPod := &buildv1.Build{}
	if err := json.Unmarshal([]byte(env["BUILD"]), buildForPod); err != nil || buildForPod.Spec.Output.To.Name != output || buildForPod.Spec.Output.PushSecret.Name != "credentials" {
		t.Errorf("builder receives %s, %v", env["BUILD"], err)
	}
	paths := map[string]bool{}
	for _, mount := range container.VolumeMounts {
		paths[mount.MountPath] = true
	}
	for _, path := range []string{buildpod.WorkDir, pushDir, pullDir, buildpod.SecretsDir + "/build/npm"} {
		if !paths[path] {
			t.Errorf("no mount at %s: %v", path, paths)
		}
	}
}

func TestWorkDirectoryIsLimited(t *testing.T) {
	limited := build()
	for want, limits := range map[string]corev1.ResourceList{"32Gi": nil, "3Gi": {corev1.ResourceEphemeralStorage: resource.MustParse("3Gi")}} {
		limited.Spec.Resources.Limits = limits
		pod, _, err := newPodFactory(t).pod(t.Context(), limited)
		if err != nil {
			t.Fatal(err)
		}
		space := pod.Spec.Volumes[0].EmptyDir
		if pod.Spec.Containers[0].VolumeMounts[0].MountPath != buildpod.WorkDir || space == nil || space.SizeLimit.String() != want {
			t.Errorf("work directory is %+v, want limit %s", pod.Spec.Volumes[0], want)
		}
	}
}

func TestPendingBuildHasReason(t *testing.T) {
	for want, change := range map[string]func(*buildv1.Build){
		"InvalidOutputReference": func(b *buildv1.Build) { b.Spec.Output.To.Name = "missing:latest" },
		"InvalidImageReference": func(b *buildv1.Build) {
			b.Spec.Strategy.DockerStrategy.From = &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:missing"}
		},
		"CannotRetrieveServiceAccount": func(b *buildv1.Build) { b.Spec.ServiceAccount = "missing" },
		"UnresolvableEnvironmentVariable": func(b *buildv1.Build) {
			b.Spec.Strategy.DockerStrategy.Env = []corev1.EnvVar{{Name: "GIT_SSH_COMMAND", ValueFrom: &corev1.EnvVarSource{}}}
		},
	} {
		build := build()
		change(build)
		_, _, err := newPodFactory(t).pod(t.Context(), build)
		if failure := (*reasonError)(nil); !errors.As(err, &failure) || string(failure.reason) != want {
			t.Errorf("error is %v, want %s", err, want)
		}
	}
}

func TestBuildCanNameImageStreamTags(t *testing.T) {
	build := build()
	build.Spec.Strategy = buildv1.BuildStrategy{CustomStrategy: &buildv1.CustomBuildStrategy{From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:base"}}}
	pod, _, err := newPodFactory(t).pod(t.Context(), build)
	if err != nil {
		t.Fatal(err)
	}
	if got := pod.Spec.Containers[0].Image; got != "registry:5000/shop/app@sha256:1" {
		t.Errorf("builder image is %q", got)
	}
	if got := build.Spec.Strategy.CustomStrategy.From.Kind; got != "ImageStreamTag" {
		t.Errorf("strategy of the build names kind %s", got)
	}
}

func TestResultOfEndedPod(t *testing.T) {
	ended := func(phase corev1.PodPhase, reason string, code int32, why string) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Phase: phase, Reason: reason, ContainerStatuses: []corev1.ContainerStatus{{
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: why}}}}}}
	}
	removed := ended("Failed", "", 143, "Error")
	removed.DeletionTimestamp = now()
	build := &buildv1.Build{Status: buildv1.BuildStatus{Reason: "PushImageToRegistryFailed", Message: "refused"}}
	for name, tt := range map[string]struct {
		build *buildv1.Build
		pod   *corev1.Pod
		want  string
	}{
		"success":               {&buildv1.Build{}, ended("Succeeded", "", 0, "Completed"), "Complete "},
		"no container":          {&buildv1.Build{}, &corev1.Pod{Status: corev1.PodStatus{Phase: "Succeeded"}}, "Error NoBuildContainerStatus"},
		"failure":               {&buildv1.Build{}, ended("Failed", "", 1, "Error"), "Failed GenericBuildFailed"},
		"reason of the builder": {build, ended("Failed", "", 1, "Error"), "Failed PushImageToRegistryFailed"},
		"out of memory":         {build, ended("Failed", "", 137, "OOMKilled"), "Failed OutOfMemoryKilled"},
		"evicted":               {build, ended("Failed", "Evicted", 137, "Error"), "Failed BuildPodEvicted"},
		"deadline exceeded":     {&buildv1.Build{}, ended("Failed", "DeadlineExceeded", 137, "Error"), "Failed GenericBuildFailed"},
		"killed":                {&buildv1.Build{}, ended("Failed", "", 137, "Error"), "Failed GenericBuildFailed"},
		"lost":                  {&buildv1.Build{}, ended("Failed", "", 137, "ContainerStatusUnknown"), "Failed FailedContainer"},
		"pod removed":           {build, removed, "Error BuildPodDeleted"},
	} {
		got := result(tt.build, tt.pod)
		if string(got.phase)+" "+string(got.reason) != tt.want {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}

func TestLogSnippetIsEndOfLog(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{State: corev1.ContainerState{
		Terminated: &corev1.ContainerStateTerminated{ExitCode: 1, Message: "1\n2\n3\n4\n5\n" + strings.Repeat("ä", 200) + "\n"}}}}}}
	if got := logSnippet(pod); got != "2\n3\n4\n5\n"+strings.Repeat("ä", 117)+"..." {
		t.Errorf("snippet is %q", got)
	}
}
