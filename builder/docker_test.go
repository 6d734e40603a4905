package builder

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	buildv1 "github.com/openshift/api/build/v1"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
)

func dockerStrategy(strategy buildv1.DockerBuildStrategy) buildv1.BuildStrategy {
	return buildv1.BuildStrategy{DockerStrategy: &strategy}
}

// inline returns the spec of a build whose only source is a Dockerfile.
func inline(dockerfile string, strategy buildv1.DockerBuildStrategy) buildv1.CommonSpec {
	return buildv1.CommonSpec{Source: buildv1.BuildSource{Dockerfile: &dockerfile}, Strategy: dockerStrategy(strategy)}
}

func TestDockerStrategySettingsApply(t *testing.T) {
	s := newFixture(t)
	base, other := s.base("one", nil, v1.Config{}), s.base("two", map[string]string{"which": "two"}, v1.Config{})
	s.variables["REFERRED"] = "referred"
	spec := binary(dockerStrategy(buildv1.DockerBuildStrategy{
		From: &corev1.ObjectReference{Name: other}, DockerfilePath: "docker/file", BuildArgs: []corev1.EnvVar{{Name: "ARGUMENT", Value: "argued"}},
		Env: []corev1.EnvVar{{Name: "VARIABLE", Value: "va$lue"}, {Name: "REFERRED", ValueFrom: &corev1.EnvVarSource{}}},
	}))
	spec.Source.ContextDir = "sub"
	spec.Output.ImageLabels = []buildv1.ImageLabel{{Name: "label", Value: "labeled"}}
	s.write(filepath.Join(s.secrets, "build", "password"), map[string]string{"word": "secret"})
	s.write(filepath.Join(s.configs, "build", "settings"), map[string]string{"set": "config"})
	spec.Source.Secrets = []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "password"}, DestinationDir: "in/secret"}}
	spec.Source.ConfigMaps = []buildv1.ConfigMapBuildSource{{ConfigMap: corev1.LocalObjectReference{Name: "settings"}}}
	spec.Source.Images = []buildv1.ImageSource{
		{From: corev1.ObjectReference{Name: other}, Paths: []buildv1.ImageSourcePath{{SourcePath: "/which", DestinationDir: "from-image"}}},
		{From: corev1.ObjectReference{Name: other}, As: []string{"elsewhere.example.com/x"}},
	}
	dockerfile := "# syntax=elsewhere.example.com/frontend\nFROM " + base + `
ARG ARGUMENT
RUN echo "$ARGUMENT $VARIABLE $REFERRED" >/said
COPY in/secret/word set from-image/which /copied/
COPY --from=elsewhere.example.com/x /which /as
`
	upload := tarOf(t, map[string]string{"sub/docker/file": dockerfile})
	got, log := s.mustBuild(spec, bytes.NewReader(upload))
	for file, want := range map[string]string{
		"which": "two", "said": "argued va$lue referred\n", "copied/word": "secret", "copied/set": "config", "copied/which": "two", "as": "two",
	} {
		if got.files[file] != want {
			t.Errorf("%s contains %q, want %q\n%s", file, got.files[file], want, log)
		}
	}
	env := strings.Join(got.Config.Env, " ")
	for _, want := range []string{"VARIABLE=va$lue", "OPENSHIFT_BUILD_NAME=app-1", "OPENSHIFT_BUILD_NAMESPACE=team"} {
		if !strings.Contains(env, want) {
			t.Errorf("the environment %q lacks %s", env, want)
		}
	}
	if got.Config.Labels["label"] != "labeled" || got.Config.Labels["io.openshift.build.namespace"] != "team" {
		t.Errorf("the labels are %v", got.Config.Labels)
	}
}

func TestNextBuildReusesLayers(t *testing.T) {
	s := newFixture(t)
	dockerfile := "FROM " + s.base("one", nil, v1.Config{}) + "\nRUN echo got >/got\nRUN echo more >/more\n"
	first, log := s.mustBuild(inline(dockerfile, buildv1.DockerBuildStrategy{}), nil)
	if strings.Contains(log, "Using cache") {
		t.Errorf("the first build reused layers:\n%s", log)
	}
	second, log := s.mustBuild(inline(dockerfile, buildv1.DockerBuildStrategy{}), nil)
	if strings.Count(log, "Using cache") != 2 || second.RootFS.DiffIDs[2] != first.RootFS.DiffIDs[2] {
		t.Errorf("the second build did not reuse layers:\n%s", log)
	}
	if _, log = s.mustBuild(inline(dockerfile, buildv1.DockerBuildStrategy{NoCache: true}), nil); strings.Contains(log, "Using cache") {
		t.Errorf("noCache reused layers:\n%s", log)
	}
}

func TestSkipLayersSquashesLayers(t *testing.T) {
	s := newFixture(t)
	dockerfile := "FROM " + s.base("one", nil, v1.Config{}) + "\nRUN echo large >/large\nRUN echo small >/small; cp /small /large\n"
	policy := buildv1.ImageOptimizationSkipLayers
	got, _ := s.mustBuild(inline(dockerfile, buildv1.DockerBuildStrategy{ImageOptimizationPolicy: &policy}), nil)
	if got.layers != 1 || got.files["large"] != "small\n" || got.files["small"] != "small\n" {
		t.Errorf("%d layers with %v", got.layers, got.files)
	}
}

func TestImageIsPushedOnlyIfHookSucceeds(t *testing.T) {
	s := newFixture(t)
	base := s.base("one", nil, v1.Config{Env: []string{"WORD=hooked", "PATH=/bin"}, Entrypoint: []string{"echo", "entered"}})
	for name, tt := range map[string]struct {
		hook   buildv1.BuildPostCommitSpec
		output string
		ok     bool
	}{
		"a script with arguments": {buildv1.BuildPostCommitSpec{Script: "echo $WORD $1", Args: []string{"argument"}}, "hooked argument\n", true},
		"a command":               {buildv1.BuildPostCommitSpec{Command: []string{"echo", "commanded"}, Args: []string{"x"}}, "commanded x\n", true},
		"arguments of the image":  {buildv1.BuildPostCommitSpec{Args: []string{"argued"}}, "entered argued\n", true},
		"a script that fails":     {buildv1.BuildPostCommitSpec{Script: "echo broken; false"}, "broken\n", false},
		"a missing command":       {buildv1.BuildPostCommitSpec{Command: []string{"nothing"}}, "", false},
	} {
		spec := inline("FROM "+base+"\nRUN echo x >/x\n", buildv1.DockerBuildStrategy{})
		spec.PostCommit = tt.hook
		build, log, err := s.build(spec, nil)
		if (err == nil) != tt.ok || !strings.Contains(log, tt.output) {
			t.Errorf("%s: %v\n%s", name, err, log)
		}
		if !tt.ok && (build.Status.Reason != buildv1.StatusReasonPostCommitHookFailed || strings.Contains(log, "Pushing")) {
			t.Errorf("%s: reason %q\n%s", name, build.Status.Reason, log)
		}
	}
}

func TestFailedBuildHasReason(t *testing.T) {
	s := newFixture(t)
	base := s.base("one", nil, v1.Config{})
	unreachable := inline("FROM "+base, buildv1.DockerBuildStrategy{})
	unreachable.Output.To = &corev1.ObjectReference{Kind: "DockerImage", Name: "127.0.0.1:1/team/app"}
	noDirectory := binary(dockerStrategy(buildv1.DockerBuildStrategy{}))
	noDirectory.Source.ContextDir = "../.."
	noImage := inline("FROM "+base, buildv1.DockerBuildStrategy{})
	noImage.Source.Images = []buildv1.ImageSource{{From: corev1.ObjectReference{Name: base}, Paths: []buildv1.ImageSourcePath{{SourcePath: "/none", DestinationDir: "x"}}}}
	repository := inline("FROM "+base, buildv1.DockerBuildStrategy{})
	repository.Source.Git = &buildv1.GitBuildSource{URI: "http://169.254.169.254/latest"}
	for name, tt := range map[string]struct {
		spec   buildv1.CommonSpec
		reason buildv1.StatusReason
	}{
		"a step that fails":     {inline("FROM "+base+"\nRUN echo oh; false\n", buildv1.DockerBuildStrategy{}), buildv1.StatusReasonDockerBuildFailed},
		"no Dockerfile":         {binary(dockerStrategy(buildv1.DockerBuildStrategy{})), buildv1.StatusReasonManageDockerfileFailed},
		"unreachable registry":  {unreachable, buildv1.StatusReasonPushImageToRegistryFailed},
		"no such base image":    {inline("FROM "+s.host+"/base/none\nRUN echo oh\n", buildv1.DockerBuildStrategy{}), buildv1.StatusReasonPullBuilderImageFailed},
		"no such directory":     {noDirectory, buildv1.StatusReasonInvalidContextDirectory},
		"no such file of image": {noImage, buildv1.StatusReasonFetchImageContentFailed},
		"the metadata address":  {repository, buildv1.StatusReasonFetchSourceFailed},
	} {
		build, log, err := s.build(tt.spec, bytes.NewReader(tarOf(t, map[string]string{"file": ""})))
		if err == nil || build.Status.Reason != tt.reason || build.Status.Message == "" || build.Status.Phase != buildv1.BuildPhaseFailed {
			t.Errorf("%s: %v, status %+v\n%s", name, err, build.Status, log)
		}
	}
}

func TestUploadedFileIsInContext(t *testing.T) {
	s := newFixture(t)
	spec := inline("FROM "+s.base("one", nil, v1.Config{})+"\nCOPY app.war /app.war\n", buildv1.DockerBuildStrategy{})
	spec.Source.Binary = &buildv1.BinaryBuildSource{AsFile: "app.war"}
	if got, log := s.mustBuild(spec, strings.NewReader("content")); got.files["app.war"] != "content" {
		t.Errorf("the image has the files %v\n%s", got.files, log)
	}
}

func TestStatusListsStages(t *testing.T) {
	s := newFixture(t)
	spec := inline("FROM "+s.base("one", nil, v1.Config{})+"\nRUN echo x\n", buildv1.DockerBuildStrategy{})
	spec.Source.Binary = &buildv1.BinaryBuildSource{AsFile: "file"}
	spec.PostCommit.Script = "echo hook"
	build, log, err := s.build(spec, strings.NewReader(""))
	if err != nil {
		t.Fatalf("%v\n%s", err, log)
	}
	var stages []string
	for _, stage := range build.Status.Stages {
		stages = append(stages, string(stage.Name)+"/"+string(stage.Steps[0].Name))
	}
	if got := strings.Join(stages, " "); got != "FetchInputs/FetchBinarySource Build/DockerBuild PostCommit/RunPostCommitHook PushImage/PushImage" {
		t.Errorf("the stages are %s", got)
	}
}

func TestBuildWithoutOutputPushesNothing(t *testing.T) {
	s := newFixture(t)
	spec := inline("FROM "+s.base("one", nil, v1.Config{})+"\nRUN echo x\n", buildv1.DockerBuildStrategy{})
	spec.Output.To = &corev1.ObjectReference{}
	if _, log, err := s.build(spec, nil); err != nil || !strings.Contains(log, "no image push requested") {
		t.Errorf("%v\n%s", err, log)
	}
}

func TestFullDiskFailsBuildOnly(t *testing.T) {
	s := newFixture(t)
	base := s.base("one", nil, v1.Config{})
	s.work = t.TempDir()
	if err := unix.Mount("tmpfs", s.work, "tmpfs", 0, "size=32m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // the engine keeps files open until the process ends
		if err := unix.Unmount(s.work, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	build, log, err := s.build(inline("FROM "+base+"\nRUN cat /dev/zero >/zeros\n", buildv1.DockerBuildStrategy{}), nil)
	if err == nil || build.Status.Reason != buildv1.StatusReasonDockerBuildFailed || !strings.Contains(log, "No space left on device") {
		t.Errorf("%v, status %+v\n%s", err, build.Status, log)
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || strings.Contains(string(mounts), " "+s.work+"/") {
		t.Errorf("mounts remain: %v\n%s", err, mounts)
	}
}
