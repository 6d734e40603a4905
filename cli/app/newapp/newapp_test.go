package newapp

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	templateclient "github.com/openshift/client-go/template/clientset/versioned/typed/template/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
	"github.com/slipway-platform/slipway/internal/apitest"
)

// cluster returns a finder for the shop project. The openshift project contains a Ruby builder, and
// a Python builder that has no image. The shop project contains a database.
func cluster(t *testing.T) *Finder {
	t.Helper()
	// Register the image types, because the test's API server supports only the types in
	// client-go's scheme.
	if err := imagev1.Install(scheme.Scheme); err != nil {
		t.Fatal(err)
	}
	config := apitest.Start(t).Config()
	images, err := imageclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	templates, err := templateclient.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	add := func(namespace, stream, tag, metadata string, annotations map[string]string) {
		t.Helper()
		reference := imagev1.TagReference{Name: tag, Annotations: annotations}
		_, item := images.ImageStreams(namespace).Create(t.Context(), &imagev1.ImageStream{
			ObjectMeta: metav1.ObjectMeta{Name: stream}, Spec: imagev1.ImageStreamSpec{Tags: []imagev1.TagReference{reference}},
		}, metav1.CreateOptions{})
		_, two := images.ImageStreamTags(namespace).Create(t.Context(), &imagev1.ImageStreamTag{
			ObjectMeta: metav1.ObjectMeta{Name: stream + ":" + tag}, Tag: &reference,
			Image: imagev1.Image{
				ObjectMeta: metav1.ObjectMeta{Name: "sha256:0123456789abcdef"}, DockerImageReference: "registry.example.com/" + stream + "@sha256:0123456789abcdef",
				DockerImageMetadata: runtime.RawExtension{Raw: []byte(metadata)},
			},
		}, metav1.CreateOptions{})
		if err := errors.Join(item, two); err != nil {
			t.Fatal(err)
		}
	}
	add(openshift, "ruby", "2.5", `{"Config": {"User": "1001", "ExposedPorts": {"8080/tcp": {}}, "Labels": {"io.openshift.s2i.scripts-url": "image:///s2i",
		"io.k8s.display-name": "Ruby 2.5", "io.k8s.description": "Builds Ruby", "io.openshift.tags": "builder,ruby"}}}`,
		map[string]string{"tags": "builder,ruby", "supports": "ruby:2.5,ruby"})
	if _, err := images.ImageStreams(openshift).Create(t.Context(), &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "python"}, Spec: imagev1.ImageStreamSpec{
		Tags: []imagev1.TagReference{{Name: "latest", Annotations: map[string]string{"tags": "builder,python", "supports": "python"}}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	add("shop", "db", "latest", `{"Config": {"User": "26", "Entrypoint": ["enter"], "Cmd": ["run", "db"], "ExposedPorts": {"3306/tcp": {}, "53/udp": {}}, "Volumes": {"/var/lib/data": {}}}}`, nil)
	add("shop", "quiet", "latest", `{"Config": {}}`, nil)
	return &Finder{Images: images, Templates: templates, Namespace: "shop"}
}

// repository creates a Git repository that contains the given files. If origin is empty, it only
// writes the files.
func repository(t *testing.T, name, origin string, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	for file, text := range files {
		path := filepath.Join(dir, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range []string{"init --quiet --initial-branch=main", "add .", "-c user.name=a -c user.email=a@example.com commit --quiet -m first", "remote add origin " + origin} {
		if origin == "" {
			break
		}
		command := exec.Command("git", strings.Fields(args)...)
		command.Dir = dir
		if output, err := command.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, output)
		}
	}
	return dir
}

var secret = regexp.MustCompile(`secret: \w+`)

func TestApplications(t *testing.T) {
	ruby := repository(t, "hello-ruby", "https://user:password@example.com/hello-ruby.git", map[string]string{"Gemfile": "", "sub/Dockerfile": "ARG V=latest\nFROM golang AS build\nFROM db:${V}\nEXPOSE 9000\n"})
	local := repository(t, "Local_App", "", map[string]string{"Gemfile": ""})
	pipeline := repository(t, "flow", "https://example.com/flow.git", map[string]string{"Jenkinsfile": ""})
	for name, tt := range map[string]struct {
		args    []string
		request Request
	}{
		"stream":              {[]string{"db", "quiet", "A=b", "C=d=e"}, Request{}},
		"together":            {[]string{"db+quiet"}, Request{Name: "pair", AsTest: true, Labels: map[string]string{"tier": "back"}}},
		"named":               {[]string{"ruby:2.5"}, Request{Name: "web"}},
		"detected":            {[]string{ruby}, Request{}},
		"builder":             {[]string{"ruby:2.5~https://example.com/a/My.App.git#v2+db"}, Request{ContextDir: "/web/../app", BuildEnvironment: []corev1.EnvVar{{Name: "B", Value: "1"}}}},
		"code":                {[]string{"ruby:2.5"}, Request{Sources: []string{"git@example.com:a/app.git"}}},
		"dockerfile":          {[]string{ruby}, Request{ContextDir: "sub"}},
		"binary":              {[]string{local}, Request{}},
		"pipeline":            {[]string{pipeline}, Request{}},
		"missing":             {[]string{"registry.example.com/a/later:2"}, Request{}},
		"missing-tags":        {[]string{"registry.example.com/a/later:2", "registry.example.com/a/later:3"}, Request{}},
		"pipeline-with-image": {[]string{"ruby:2.5~https://example.com/a"}, Request{Strategy: PipelineStrategy}},
		"missing-base":        {[]string{"later~https://example.com/later.git"}, Request{}},
		"later-tag":           {[]string{"python:3~https://example.com/app.git"}, Request{Options: BuildOptions{SourceSecret: "clone"}}},
		"build":               {[]string{ruby}, Request{BuildOnly: true, By: "OpenShiftNewBuild"}},
		"build-inline":        {nil, Request{BuildOnly: true, Name: "web", Options: BuildOptions{Inline: "FROM quiet\nRUN true\n", Arguments: []corev1.EnvVar{{Name: "A", Value: "1"}}}}},
		"build-binary": {[]string{"ruby:2.5"}, Request{BuildOnly: true, Name: "app", Options: BuildOptions{
			Binary: true, To: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "other:v1"}, SourceSecret: "clone", PushSecret: "push",
			Secrets:     []buildv1.SecretBuildSource{{Secret: corev1.LocalObjectReference{Name: "npm"}, DestinationDir: "conf"}},
			SourceImage: "quiet", SourcePaths: []buildv1.ImageSourcePath{{SourcePath: "/opt/assets", DestinationDir: "public"}},
		}}},
		"build-unknown-base": {nil, Request{BuildOnly: true, Options: BuildOptions{Inline: "FROM centos:7\n", ToImage: true}}},
		"build-scratch":      {nil, Request{BuildOnly: true, Name: "empty", Strategy: DockerStrategy, Options: BuildOptions{Binary: true, NoOutput: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			finder := cluster(t)
			finder.AllowMissing, finder.AllowMissingTags = strings.HasPrefix(name, "missing"), strings.HasPrefix(name, "later")
			components, variables, err := Arguments(tt.args)
			if err != nil {
				t.Fatal(err)
			}
			for _, pair := range variables {
				key, value, _ := strings.Cut(pair, "=")
				tt.request.Environment = append(tt.request.Environment, corev1.EnvVar{Name: key, Value: value})
			}
			tt.request.Components = components
			plan, err := New(t.Context(), finder, tt.request)
			if err != nil {
				t.Fatal(err)
			}
			var out strings.Builder
			plan.Describe(&out)
			for _, object := range plan.Objects() {
				text, err := yaml.Marshal(object)
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&out, "---\n%s", secret.ReplaceAll(text, []byte("secret: random")))
			}
			objectstest.Golden(t, filepath.Join("testdata", name+".golden"), strings.ReplaceAll(out.String(), filepath.Dir(local), "/dir"))
		})
	}
}

func TestErrorNamesMissingComponent(t *testing.T) {
	empty := repository(t, "empty", "", map[string]string{"README": ""})
	python := repository(t, "python", "", map[string]string{"setup.py": ""})
	for name, tt := range map[string]struct {
		args    []string
		request Request
		want    string
	}{
		"nothing":          {[]string{"nothing"}, Request{}, `with name "nothing"; available image streams and templates: db, python, quiet, ruby`},
		"misspelled":       {[]string{"quite"}, Request{}, `only a partial match was found for "quite": "shop/quiet"`},
		"beginning":        {[]string{"pyth"}, Request{}, "* Image stream \"python\" (tag \"latest\") in project \"openshift\"\n  Use --image-stream=\"openshift/python\" to specify this image"},
		"no language":      {[]string{empty}, Request{}, "no language matched"},
		"no Dockerfile":    {[]string{empty}, Request{Strategy: DockerStrategy}, ": No Dockerfile was found"},
		"two builders":     {[]string{"ruby:2.5", "ruby:2.5"}, Request{Sources: []string{"https://example.com/a"}}, "several images could build"},
		"name of several":  {[]string{"db", "quiet"}, Request{Name: "both"}, "only one component or source repository can be used when specifying a name"},
		"no builder image": {[]string{"db~https://example.com/a"}, Request{}, `the image match "db" for source repository "https://example.com/a" does not appear to be a source-to-image builder`},
		"no directory":     {[]string{"file://" + filepath.ToSlash(repository(t, "a", "https://example.com/a", map[string]string{"a": ""}))}, Request{ContextDir: "none"}, `no directory "none"`},
		"no image yet":     {[]string{"python~https://example.com/a"}, Request{}, `image stream "openshift/python" has no image for its tag "latest" yet`},
		"no such tag":      {[]string{"python:2"}, Request{}, `with name "python:2"`},
		"no builder yet":   {[]string{python}, Request{}, `image stream "openshift/python" has no image`},
		"dash":             {[]string{"https://example.com/a#--upload-pack=x"}, Request{}, "must not start with a dash"},
		"no source":        {[]string{"db"}, Request{BuildOnly: true}, "at least one source repository"},
		"no builder":       {nil, Request{BuildOnly: true, Strategy: SourceStrategy, Options: BuildOptions{Binary: true}}, "you must provide a builder image"},
		"unnamed build":    {nil, Request{BuildOnly: true, Options: BuildOptions{Binary: true}}, "--name"},
		"own base":         {[]string{"db"}, Request{BuildOnly: true, Options: BuildOptions{Binary: true}}, "would push to its base image"},
		"no repository":    {[]string{"file://" + t.TempDir() + "/none"}, Request{}, "clone"},
	} {
		components, _, err := Arguments(tt.args)
		if err != nil {
			t.Fatal(err)
		}
		tt.request.Components = components
		if _, err := New(t.Context(), cluster(t), tt.request); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
	}
	for arg, want := range map[string]string{"~https://example.com/a": "before the ~", "a~": "after the ~", "a~b": "neither a Git URL nor a directory"} {
		if _, _, err := Arguments([]string{arg}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", arg, err, want)
		}
	}
}

func TestNames(t *testing.T) {
	for from, want := range map[string]string{
		"https://example.com/a/Hello_World.git#v1": "hello-world", "git@example.com:app.git": "app", "registry.example.com:5000/a/my.sql:8@sha256:00": "my-sql",
		"/srv/2048-game/": "game", "x" + strings.Repeat("y", 80): "x" + strings.Repeat("y", maxName-1), "123": "",
	} {
		if got := Name(from); got != want {
			t.Errorf("%s has the name %q, want %q", from, got, want)
		}
	}
}

func TestLanguages(t *testing.T) {
	for file, want := range map[string]string{
		"pom.xml": "jee", "config.ru": "ruby", "package.json": "nodejs", "index.php": "php", "setup.py": "python", "cpanfile": "perl",
		"build.sbt": "scala", "a.csproj": "dotnet", "go.mod": "golang", "README": "",
	} {
		dir := filepath.Join(t.TempDir(), "odd[1]*name")
		if err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(filepath.Join(dir, file), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if got := Language(dir); got != want {
			t.Errorf("%s is %q, want %q", file, got, want)
		}
	}
}

func TestTagsOfStreamFollowRegistries(t *testing.T) {
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Name: "ruby", Labels: map[string]string{"app": "web"}}}
	stream.Spec.Tags = []imagev1.TagReference{follow(&Image{Name: "registry.example.com/ruby:2.4", Tag: "2.4"}), {Name: "own"}}
	tags := Tags(stream)
	if len(tags) != 1 || tags[0].Name != "ruby:2.4" || tags[0].Tag.From.Name != "registry.example.com/ruby:2.4" || tags[0].Labels["app"] != "web" {
		t.Errorf("tags %+v, want ruby:2.4", tags)
	}
}

func TestReferencesOutsideOfBranchesAreFetched(t *testing.T) {
	dir := repository(t, "app", "https://example.com/app.git", map[string]string{"Gemfile": ""})
	if output, err := exec.Command("git", "-C", dir, "update-ref", "refs/pull/1/head", "HEAD").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	source, err := Open(t.Context(), "file://"+filepath.ToSlash(dir)+"#refs/pull/1/head", "")
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	files, err := source.Files(t.Context())
	if err != nil || Language(files) != "ruby" {
		t.Errorf("the source in %q: %v", files, err)
	}
}
