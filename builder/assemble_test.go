package builder

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// builderFiles contains the scripts of a builder image.
var builderFiles = map[string]string{
	"app/": "", "home/": "", "tmp/": "",
	"s2i/assemble": `#!/bin/sh
set -e
id -u >/app/user
cp /tmp/src/code /app/code
cat secret/word >/app/word
test ! -e /tmp/artifacts/kept || cat /tmp/artifacts/kept >/app/kept
echo "$FROM_FILE $FROM_STRATEGY $OPENSHIFT_BUILD_NAME" >/app/env
find /tmp/src >/app/list
echo kept >/app/old
`,
	"s2i/run":            "#!/bin/sh\ncat /app/code\n",
	"s2i/save-artifacts": "#!/bin/sh\nmkdir -p /tmp/out; cat /app/old >/tmp/out/kept; tar -C /tmp/out -cf - kept\n",
}

// builderImage returns an image whose user can write to /app.
func builderImage(s *fixture, user string) string {
	return s.base("builder-"+user, builderFiles, v1.Config{
		User: user, WorkingDir: "/home", Env: []string{"PATH=/bin"},
		Labels: map[string]string{"io.openshift.s2i.scripts-url": "image:///s2i", "io.k8s.description": "builder"},
	})
}

func TestSourceStrategyAssemblesSource(t *testing.T) {
	s := newFixture(t)
	image := builderImage(s, "1001")
	s.write(filepath.Join(s.secrets, "build", "password"), map[string]string{"word": "secret-word"})
	spec := binary(buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{
		From: corev1.ObjectReference{Kind: "DockerImage", Name: image}, Incremental: ptr.To(true),
		Env: []corev1.EnvVar{{Name: "FROM_STRATEGY", Value: "strategy"}},
	}})
	spec.Source.Secrets = []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "password"}, DestinationDir: "secret"}}
	upload := tarOf(t, map[string]string{
		"code": "print", ".s2i/environment": "# comment\nFROM_FILE=file\n", ".s2iignore": "*.log\n", "big.log": "noise", "sub/x.log": "noise", "sub/kept": "",
	})
	got, log := s.mustBuild(spec, bytes.NewReader(upload))
	for file, want := range map[string]string{
		"app/user": "1001\n", "app/code": "print", "app/word": "secret-word", "app/env": "file strategy app-1\n", "home/secret/word": "", "app/kept": "",
	} {
		if got.files[file] != want {
			t.Errorf("%s contains %q, want %q\n%s", file, got.files[file], want, log)
		}
	}
	if list := got.files["app/list"]; strings.Contains(list, "big.log") || !strings.Contains(list, "/tmp/src/sub/kept") {
		t.Errorf("the files in /tmp/src are %s", list)
	}
	if got.Config.User != "1001" || len(got.Config.Cmd) != 1 || got.Config.Cmd[0] != "/s2i/run" {
		t.Errorf("the image is configured as %+v", got.Config)
	}
	for label, want := range map[string]string{"io.openshift.build.image": image, "io.k8s.description": "builder", "io.openshift.build.name": "app-1"} {
		if got.Config.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, got.Config.Labels[label], want)
		}
	}
	if env := strings.Join(got.Config.Env, " "); !strings.Contains(env, "FROM_FILE=file FROM_STRATEGY=strategy OPENSHIFT_BUILD_NAME=app-1 OPENSHIFT_BUILD_NAMESPACE=team") {
		t.Errorf("the environment is %s", env)
	}

	got, log = s.mustBuild(spec, bytes.NewReader(upload))
	if got.files["app/kept"] != "kept\n" {
		t.Errorf("the second build got artifacts %q\n%s", got.files["app/kept"], log)
	}
}

// If a builder image's USER is root, its scripts run as the user in assembleUserLabel. The hook
// must run as the same user.
func TestHookOfSourceBuildHasUserOfScripts(t *testing.T) {
	s := newFixture(t)
	image := s.base("builder-root", builderFiles, v1.Config{User: "0", Env: []string{"PATH=/bin"}, Labels: map[string]string{
		"io.openshift.s2i.scripts-url": "image:///s2i", assembleUserLabel: "1001",
	}})
	spec := binary(buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Name: image}}})
	spec.PostCommit.Command = []string{"id", "-u"}
	spec.Output.ImageLabels = []buildv1.ImageLabel{{Name: assembleUserLabel, Value: "0"}}
	_, log := s.mustBuild(spec, bytes.NewReader(tarOf(t, map[string]string{".s2i/bin/assemble": "#!/bin/sh\n"})))
	if !strings.Contains(log, "\n1001\n") {
		t.Errorf("the hook ran as another user:\n%s", log)
	}
}

func TestScriptsOfSourceTakePrecedence(t *testing.T) {
	s := newFixture(t)
	spec := binary(buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Name: builderImage(s, "1001")}}})
	got, log := s.mustBuild(spec, bytes.NewReader(tarOf(t, map[string]string{".s2i/bin/assemble": "#!/bin/sh\necho own >/app/own\n"})))
	if got.files["app/own"] != "own\n" || got.Config.Cmd[0] != "/s2i/run" {
		t.Errorf("own assemble wrote %q, the command is %v\n%s", got.files["app/own"], got.Config.Cmd, log)
	}
}

func TestFailedSourceBuildHasReason(t *testing.T) {
	s := newFixture(t)
	image := builderImage(s, "1001")
	for name, tt := range map[string]struct {
		image  func() string
		script string
		reason buildv1.StatusReason
	}{
		"a script that fails": {func() string { return image }, "#!/bin/sh\necho it broke; exit 3\n", reasonAssembleFailed},
		"no scripts":          {func() string { return s.base("bare", nil, v1.Config{User: "1001"}) }, "", reasonFetchScriptsFailed},
		"no such image":       {func() string { return s.host + "/base/none:latest" }, "", buildv1.StatusReasonPullBuilderImageFailed},
		"root":                {func() string { return builderImage(s, "0") }, "", buildv1.StatusReasonPullBuilderImageFailed},
		"a named user":        {func() string { return builderImage(s, "app") }, "", buildv1.StatusReasonPullBuilderImageFailed},
	} {
		spec := binary(buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Name: tt.image()}}})
		build, log, err := s.build(spec, bytes.NewReader(tarOf(t, map[string]string{".s2i/bin/assemble": tt.script})))
		if err == nil || build.Status.Reason != tt.reason || build.Status.Message == "" {
			t.Errorf("%s: %v, reason %q\n%s", name, err, build.Status.Reason, log)
		}
	}
}

func TestCheckUser(t *testing.T) {
	for _, tt := range []struct {
		user, allowed string
		ok            bool
	}{
		{"1001", "1-", true}, {"1001:0", "1-", true}, {"0", "1-", false}, {"", "1-", false}, {"app", "1-", false}, {"0", "0", true}, {"5", "0,4-6", true},
		{"7", "0,4-6", false}, {"root", "0-", false}, {"99999999999", "1-", false},
	} {
		if err := checkUser(tt.user, tt.allowed); (err == nil) != tt.ok {
			t.Errorf("user %q, allowed %q: %v", tt.user, tt.allowed, err)
		}
	}
}
