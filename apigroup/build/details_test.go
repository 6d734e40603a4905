package build

import (
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/slipway-platform/slipway/internal/buildpod"
)

func TestOnlyPodOfBuildCanReport(t *testing.T) {
	build := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-1", UID: "build"}}
	podOf := func(owner, uid types.UID) *corev1.Pod {
		controller := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app-1-build", UID: uid, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "build.openshift.io/v1", Kind: "Build", Name: "app-1", UID: owner, Controller: &controller},
		}}}
	}
	token := func(account, podUID string) user.Info {
		return &user.DefaultInfo{Name: "system:serviceaccount:shop:" + account, Extra: map[string][]string{
			"authentication.kubernetes.io/pod-name": {"app-1-build"}, "authentication.kubernetes.io/pod-uid": {podUID},
		}}
	}
	for _, tt := range []struct {
		name string
		user user.Info
		pod  *corev1.Pod
		want bool
	}{
		{"the pod of the build", token("builder", "pod"), podOf("build", "pod"), true},
		{"an earlier pod of the same name", token("builder", "earlier"), podOf("build", "pod"), false},
		{"a pod with the name and another owner", token("builder", "pod"), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "pod"}}, false},
		{"the pod of an earlier build of the same name", token("builder", "pod"), podOf("earlier", "pod"), false},
		{"another service account", token("default", "pod"), podOf("build", "pod"), false},
		{"a deleted pod", token("builder", "pod"), nil, false},
		{"a token without a pod", &user.DefaultInfo{Name: "system:serviceaccount:shop:builder"}, podOf("build", ""), false},
	} {
		if got := isPodOf(tt.user, build, tt.pod); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestValidateReportLimitsSize(t *testing.T) {
	long := strings.Repeat("a", maxTextBytes+1)
	for name, change := range map[string]func(*buildv1.Build){
		"message": func(b *buildv1.Build) { b.Status.Message = long },
		"reason":  func(b *buildv1.Build) { b.Status.Reason = buildv1.StatusReason(long) },
		"digest":  func(b *buildv1.Build) { b.Status.Output.To = &buildv1.BuildStatusOutputTo{ImageDigest: long} },
		"commit":  func(b *buildv1.Build) { b.Spec.Revision.Git.Message = long },
		"author":  func(b *buildv1.Build) { b.Spec.Revision.Git.Author.Email = long },
		"kind":    func(b *buildv1.Build) { b.Spec.Revision = &buildv1.SourceRevision{Type: buildv1.BuildSourceType(long)} },
		"stages":  func(b *buildv1.Build) { b.Status.Stages = make([]buildv1.StageInfo, maxStages+1) },
		"stage":   func(b *buildv1.Build) { b.Status.Stages[0].Name = buildv1.StageName(long) },
		"steps":   func(b *buildv1.Build) { b.Status.Stages[0].Steps = make([]buildv1.StepInfo, maxSteps+1) },
		"step":    func(b *buildv1.Build) { b.Status.Stages[0].Steps[0].Name = buildv1.StepName(long) },
		"tests": func(b *buildv1.Build) {
			b.Annotations[buildpod.TestResultsAnnotation] = strings.Repeat("a", buildpod.MaxTestResults+1)
		},
		"": func(*buildv1.Build) {},
	} {
		report := &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			buildpod.TestResultsAnnotation: strings.Repeat("a", buildpod.MaxTestResults),
		}}}
		report.Spec.Revision = &buildv1.SourceRevision{Git: &buildv1.GitSourceRevision{Commit: "abc"}}
		report.Status.Message = long[1:]
		report.Status.Stages = []buildv1.StageInfo{{Name: buildv1.StageBuild, Steps: []buildv1.StepInfo{{Name: buildv1.StepDockerBuild}}}}
		change(report)
		if errs := validateReport(report); (len(errs) > 0) != (name != "") {
			t.Errorf("report with a long %q: %v", name, errs)
		}
	}
}
