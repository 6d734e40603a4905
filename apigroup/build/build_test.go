package build

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// lenient accepts all values. Scenarios test Kubernetes' validation.
type lenient struct{}

func (lenient) Env([]corev1.EnvVar, *field.Path) field.ErrorList                    { return nil }
func (lenient) Resources(*corev1.ResourceRequirements, *field.Path) field.ErrorList { return nil }

func valid() *buildv1.BuildConfig {
	return &buildv1.BuildConfig{Spec: buildv1.BuildConfigSpec{CommonSpec: buildv1.CommonSpec{
		Source:   buildv1.BuildSource{Git: &buildv1.GitBuildSource{URI: "https://git.example.com/app.git", Ref: "main"}},
		Strategy: buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Name: "ruby:2.5"}}},
		Output:   buildv1.BuildOutput{To: &corev1.ObjectReference{Name: "app:latest"}},
	}}}
}

func TestDefaults(t *testing.T) {
	config := valid()
	config.Spec.Triggers = []buildv1.BuildTriggerPolicy{{Type: "github"}, {Type: "imageChange"}}
	setConfigDefaults(config)
	spec := config.Spec
	if spec.RunPolicy != "Serial" || *spec.SuccessfulBuildsHistoryLimit != 5 || *spec.FailedBuildsHistoryLimit != 5 || spec.Source.Type != "Git" ||
		spec.Strategy.Type != "Source" || spec.Strategy.SourceStrategy.From.Kind != "ImageStreamTag" || spec.Output.To.Kind != "ImageStreamTag" {
		t.Errorf("spec is %+v", spec)
	}
	if spec.Triggers[0].Type != "GitHub" || spec.Triggers[1].Type != "ImageChange" || spec.Triggers[1].ImageChange == nil {
		t.Errorf("triggers are %+v", spec.Triggers)
	}
}

func TestValidation(t *testing.T) {
	type config = *buildv1.BuildConfig
	trigger := func(policies ...buildv1.BuildTriggerPolicy) func(config) {
		return func(c config) { c.Spec.Triggers = policies }
	}
	secret := &buildv1.WebHookTrigger{SecretReference: &buildv1.SecretLocalReference{Name: "hook"}}
	image := buildv1.BuildTriggerPolicy{Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{}}
	for name, tt := range map[string]struct {
		change func(config)
		want   []string
	}{
		"plain":           {func(config) {}, nil},
		"run policy":      {func(c config) { c.Spec.RunPolicy = "Sometimes" }, []string{"spec.runPolicy"}},
		"history":         {func(c config) { c.Spec.FailedBuildsHistoryLimit = ptr.To[int32](-1) }, []string{"spec.failedBuildsHistoryLimit"}},
		"git over ssh":    {func(c config) { c.Spec.Source.Git.URI = "git@git.example.com:app.git" }, nil},
		"no URL":          {func(c config) { c.Spec.Source.Git.URI = "" }, []string{"spec.source.git.uri"}},
		"URL with space":  {func(c config) { c.Spec.Source.Git.URI = "https://a b" }, []string{"spec.source.git.uri"}},
		"proxy":           {func(c config) { c.Spec.Source.Git.HTTPProxy = ptr.To("proxy") }, []string{"spec.source.git.httpProxy"}},
		"git and binary":  {func(c config) { c.Spec.Source.Binary = &buildv1.BinaryBuildSource{} }, []string{"spec.source"}},
		"outside":         {func(c config) { c.Spec.Source.ContextDir = "a/../../b" }, []string{"spec.source.contextDir"}},
		"absolute":        {func(c config) { c.Spec.Source.ContextDir = "/a" }, []string{"spec.source.contextDir"}},
		"long Dockerfile": {func(c config) { c.Spec.Source.Dockerfile = ptr.To(string(make([]byte, maxDockerfileBytes+1))) }, []string{"spec.source.dockerfile"}},
		"unnamed secret":  {func(c config) { c.Spec.Source.SourceSecret = &corev1.LocalObjectReference{} }, []string{"spec.source.sourceSecret.name"}},
		"image source without paths": {func(c config) {
			c.Spec.Source.Images = []buildv1.ImageSource{{From: corev1.ObjectReference{Kind: "DockerImage", Name: "a"}}}
		}, []string{"spec.source.images[0].paths"}},
		"image paths": {func(c config) {
			c.Spec.Source.Images = []buildv1.ImageSource{{From: corev1.ObjectReference{Kind: "DockerImage", Name: "a"}, Paths: []buildv1.ImageSourcePath{{SourcePath: "a", DestinationDir: "../b"}}}}
		}, []string{"spec.source.images[0].paths[0].sourcePath", "spec.source.images[0].paths[0].destinationDir"}},
		"no strategy":                       {func(c config) { c.Spec.Strategy.SourceStrategy = nil }, []string{"spec.strategy"}},
		"two strategies":                    {func(c config) { c.Spec.Strategy.DockerStrategy = &buildv1.DockerBuildStrategy{} }, []string{"spec.strategy"}},
		"untagged":                          {func(c config) { c.Spec.Strategy.SourceStrategy.From.Name = "ruby" }, []string{"spec.strategy.sourceStrategy.from.name"}},
		"unknown kind":                      {func(c config) { c.Spec.Output.To.Kind = "Tarball" }, []string{"spec.output.to.kind"}},
		"no output":                         {func(c config) { c.Spec.Output.To = nil }, nil},
		"same labels":                       {func(c config) { c.Spec.Output.ImageLabels = []buildv1.ImageLabel{{Name: "a"}, {Name: "a"}} }, []string{"spec.output.imageLabels[1].name"}},
		"two hooks":                         {func(c config) { c.Spec.PostCommit = buildv1.BuildPostCommitSpec{Script: "a", Command: []string{"b"}} }, []string{"spec.postCommit"}},
		"deadline of zero":                  {func(c config) { c.Spec.CompletionDeadlineSeconds = ptr.To[int64](0) }, []string{"spec.completionDeadlineSeconds"}},
		"webhook":                           {trigger(buildv1.BuildTriggerPolicy{Type: "GitHub", GitHubWebHook: secret}), nil},
		"webhook without secret":            {trigger(buildv1.BuildTriggerPolicy{Type: "GitHub", GitHubWebHook: &buildv1.WebHookTrigger{}}), []string{"spec.triggers[0].github.secretReference"}},
		"settings for another webhook type": {trigger(buildv1.BuildTriggerPolicy{Type: "GitLab", GitHubWebHook: secret}), []string{"spec.triggers[0].gitlab"}},
		"unknown trigger":                   {trigger(buildv1.BuildTriggerPolicy{Type: "Timer"}), []string{"spec.triggers[0].type"}},
		"own image":                         {trigger(image), nil},
		"same image":                        {trigger(image, image), []string{"spec.triggers[1].imageChange"}},
		"no image": {func(c config) {
			c.Spec.Strategy.SourceStrategy.From = corev1.ObjectReference{Kind: "DockerImage", Name: "ruby"}
			c.Spec.Triggers = []buildv1.BuildTriggerPolicy{image}
		}, []string{"spec.triggers[0].imageChange"}},
	} {
		t.Run(name, func(t *testing.T) {
			config := valid()
			setConfigDefaults(config)
			tt.change(config)
			var got []string
			errs := validator{lenient{}}.config(t.Context(), config, nil)
			for _, problem := range errs {
				got = append(got, problem.Field)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("errors are %v, want %q", errs, tt.want)
			}
		})
	}
}

func TestSpecOfBuildIsImmutable(t *testing.T) {
	old := &buildv1.Build{Spec: buildv1.BuildSpec{CommonSpec: valid().Spec.CommonSpec}}
	prepareBuild(t.Context(), old, nil)
	if old.Status.Phase != "New" {
		t.Errorf("phase of a new build is %q", old.Status.Phase)
	}
	check := validator{lenient{}}
	cancelled := old.DeepCopy()
	cancelled.Status.Cancelled, cancelled.Status.Phase = true, "Cancelled"
	if errs := check.build(t.Context(), cancelled, old); len(errs) > 0 {
		t.Errorf("cancel: %v", errs)
	}
	restarted := cancelled.DeepCopy()
	restarted.Status.Phase, restarted.Spec.Source.Git.URI = "Running", "https://elsewhere.example.com"
	if errs := check.build(t.Context(), restarted, cancelled); len(errs) != 2 {
		t.Errorf("restart with another source: %v", errs)
	}
}

// Permission to start builds does not include permission to answer inputs. An answer requires
// permission to update builds.
func TestNewBuildHasNoAnswers(t *testing.T) {
	const answer = "pipeline.slipway.io/input-deploy"
	config := valid()
	config.Spec.Strategy = buildv1.BuildStrategy{JenkinsPipelineStrategy: &buildv1.JenkinsPipelineBuildStrategy{}}
	build, err := instantiate.Build(config, &buildv1.BuildRequest{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{answer: "proceed", "other": "kept"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	prepareBuild(t.Context(), build, nil)
	if _, exists := build.Annotations[answer]; exists || build.Annotations["other"] != "kept" {
		t.Errorf("a started build has the annotations %v", build.Annotations)
	}
	build.Annotations[answer] = "proceed"
	clone := instantiate.Clone(build, &buildv1.BuildRequest{}, 2, "x")
	prepareBuild(t.Context(), clone, nil)
	prepareBuild(t.Context(), build, build.DeepCopy())
	if _, exists := clone.Annotations[answer]; exists || build.Annotations[answer] != "proceed" {
		t.Errorf("a cloned build has the annotations %v, an answered one %v", clone.Annotations, build.Annotations)
	}
}

// A user cannot answer on behalf of another user, not even by repeating that user's answer.
func TestInputResponseRecordsUser(t *testing.T) {
	const answer, by = "pipeline.slipway.io/input-deploy", "pipeline.slipway.io/user-deploy"
	as := func(name string, groups ...string) context.Context {
		return request.WithUser(t.Context(), &user.DefaultInfo{Name: name, Groups: groups})
	}
	annotated := func(annotations map[string]string) *buildv1.Build {
		return &buildv1.Build{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}
	}
	build := annotated(map[string]string{answer: "proceed", by: `{"user":"ann"}`, "pipeline.slipway.io/user-other": `{"user":"ann"}`})
	prepareBuild(as("bob", "dev", "system:authenticated"), build, annotated(nil))
	want := map[string]string{answer: "proceed", by: `{"user":"bob","groups":["dev"]}`}
	if diff := cmp.Diff(want, build.Annotations); diff != "" {
		t.Errorf("after bob's answer: %s", diff)
	}
	next := annotated(map[string]string{answer: "proceed", by: `{"user":"ann"}`, "note": "x"})
	prepareBuild(as("ann"), next, build)
	if got := next.Annotations[by]; got != want[by] {
		t.Errorf("after an unrelated change by ann: %s", got)
	}
	changed := annotated(map[string]string{answer: "abort"})
	prepareBuild(as("ann"), changed, build)
	if got := changed.Annotations[by]; got != `{"user":"ann"}` {
		t.Errorf("after ann changed the answer: %s", got)
	}
	removed := annotated(map[string]string{by: want[by]})
	prepareBuild(as("ann"), removed, build)
	if len(removed.Annotations) > 0 {
		t.Errorf("after ann removed the answer: %v", removed.Annotations)
	}
}

func TestLastVersionNeverDecreases(t *testing.T) {
	old, config := valid(), valid()
	old.Status.LastVersion = 4
	keepLastVersion(t.Context(), config, old)
	if config.Status.LastVersion != 4 {
		t.Errorf("last version is %d", config.Status.LastVersion)
	}
}

func TestSourceText(t *testing.T) {
	for want, change := range map[string]func(*buildv1.CommonSpec){
		"Git@main": func(*buildv1.CommonSpec) {},
		"Git@0123456": func(s *buildv1.CommonSpec) {
			s.Revision = &buildv1.SourceRevision{Git: &buildv1.GitSourceRevision{Commit: "0123456789"}}
		},
		"Binary":     func(s *buildv1.CommonSpec) { s.Source = buildv1.BuildSource{Binary: &buildv1.BinaryBuildSource{}} },
		"Dockerfile": func(s *buildv1.CommonSpec) { s.Source = buildv1.BuildSource{Dockerfile: ptr.To("FROM a")} },
		"":           func(s *buildv1.CommonSpec) { s.Source = buildv1.BuildSource{} },
	} {
		spec := valid().Spec.CommonSpec
		change(&spec)
		if got := sourceText(&spec); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
