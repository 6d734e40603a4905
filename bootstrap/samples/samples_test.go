package samples

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	templatev1 "github.com/openshift/api/template/v1"
	"sigs.k8s.io/yaml"
)

// objects strictly decodes the objects of the given kind in the manifests, and returns them, keyed
// by name.
func objects[T any](t *testing.T, kind string) map[string]*T {
	t.Helper()
	manifests, err := Manifests()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*T{}
	for _, manifest := range manifests {
		if !strings.Contains(manifest.Text, "\nkind: "+kind+"\n") {
			continue
		}
		object := new(T)
		if err := yaml.Unmarshal([]byte(manifest.Text), object, yaml.DisallowUnknownFields); err != nil {
			t.Fatalf("%s %q: %v", kind, manifest.Name, err)
		}
		all[manifest.Name] = object
	}
	return all
}

func TestTablesOfImagesAreComplete(t *testing.T) {
	images, err := Images()
	if err != nil {
		t.Fatal(err)
	}
	for _, image := range images {
		if image.DisplayName == "" || image.Description == "" || image.Icon == "" || image.Version == "" || len(image.Tags) == 0 ||
			image.base == nil && (len(image.Packages) == 0 || image.UID == 0) {
			t.Errorf("image %q lacks a value: %+v", image.Name, image)
		}
		if image.base != nil || image.Entrypoint != "" {
			continue
		}
		if image.Service == "" || image.Command == "" || image.Port < 1024 {
			t.Errorf("image %q has no port or no command: %+v", image.Name, image)
		}
		if image.Volume != "" && !slices.Contains(image.Writable, image.Volume) {
			t.Errorf("users of image %q cannot write its volume", image.Name)
		}
		if image.Builder() && !slices.Contains(image.Writable, image.Directory()) {
			t.Errorf("users of image %q cannot write its source", image.Name)
		}
		if _, err := os.Stat(filepath.Join("..", "..", image.Example)); err != nil {
			t.Errorf("image %q has no example: %v", image.Name, err)
		}
		needed := []string{"usr/libexec/check-container"}
		if image.Builder() {
			needed = []string{"usr/libexec/s2i/assemble", "usr/libexec/s2i/run", "usr/libexec/s2i/usage"}
		}
		for _, name := range needed {
			if content, err := os.ReadFile(filepath.Join("images", image.Name, "root", name)); err != nil || !strings.HasPrefix(string(content), "#!") {
				t.Errorf("image %q has no script %s", image.Name, name)
			}
		}
	}
}

func TestRecipeFollowsImageTable(t *testing.T) {
	selected, err := Select([]string{"mysql"})
	if err != nil || len(selected) != 1 || selected[0].Name != "mariadb" {
		t.Fatalf("the image of the stream mysql is %v, %v", selected, err)
	}
	dir := t.TempDir()
	if err := selected[0].WriteRecipe(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`VOLUME ["/var/lib/mysql/data"]`, "EXPOSE 3306", "USER 27", `CMD ["run-mysqld"]`, `LABEL io.openshift.expose-services="3306:mysql"`, `ENV HOME="/var/lib/mysql"`,
	} {
		if !strings.Contains(string(text), want+"\n") {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "root/run/mysqld")); err != nil || info.Mode().Perm() != 0o775 {
		t.Errorf("the group cannot write /run/mysqld: %v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Join(dir, "root/usr/bin/run-mysqld")); err != nil || info.Mode().Perm()&0o111 == 0 {
		t.Errorf("run-mysqld is not executable: %v", err)
	}
}

func TestRecipeOfBundleHasBaseAndSpecification(t *testing.T) {
	selected, err := Select([]string{"hello-world-apb", "apb-base", "postgresql-apb"})
	var names []string
	for _, image := range selected {
		names = append(names, image.Name)
	}
	if err != nil || strings.Join(names, " ") != "apb-base hello-world-apb postgresql-apb" {
		t.Fatalf("the selected images are %v, %v", names, err)
	}
	for _, image := range selected[1:] {
		dir := t.TempDir()
		if err := image.WriteRecipe(dir); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(string(text), "FROM localhost/sample-apb-base:") || !strings.Contains(string(text), "LABEL com.redhat.apb.spec=") {
			t.Errorf("the recipe of %q is\n%s", image.Name, text)
		}
		for _, action := range []string{"provision", "update", "deprovision"} {
			if _, err := os.Stat(filepath.Join(dir, "root/opt/apb/project", action+".yml")); err != nil {
				t.Errorf("image %q: %v", image.Name, err)
			}
		}
	}
}

func TestSelectReturnsErrorForUnknownImage(t *testing.T) {
	if _, err := Select([]string{"oracle"}); err == nil || !strings.Contains(err.Error(), `find image "oracle": it must be one of apb-base, golang`) {
		t.Error(err)
	}
}

func TestStreamTagsContainBuildCommand(t *testing.T) {
	streams := objects[imagev1.ImageStream](t, "ImageStream")
	for _, tag := range streams["jenkins"].Spec.Tags {
		if got := tag.Annotations["slipway.openshift.io/build-command"]; got != "oc import-image jenkins:2 -n openshift --from=IMAGE --confirm" {
			t.Errorf("the command that imports the image of Jenkins is %q", got)
		}
	}
	delete(streams, "jenkins")
	for name, stream := range streams {
		tags := stream.Spec.Tags
		hasVersion := len(tags) == 2 && tags[0].From != nil && tags[0].From.Name == tags[1].Name
		hasLatest := len(tags) == 1 && tags[0].From == nil
		if tags[0].Name != "latest" || !hasVersion && !hasLatest {
			t.Fatalf("stream %q has tags %+v", name, tags)
		}
		for _, tag := range tags {
			_, target, _ := strings.Cut(tag.Annotations["slipway.openshift.io/build-command"], "slipway samples build ")
			if selected, err := Select([]string{target}); target == "" || err != nil || !slices.Contains(selected[len(selected)-1].Streams, name) {
				t.Errorf("the command that builds tag %q of stream %q is %q, %v", tag.Name, name, target, err)
			}
			if icon := tag.Annotations["iconClass"]; len(icon) <= len("icon-") {
				t.Errorf("tag %q of stream %q has icon %q", tag.Name, name, icon)
			}
		}
	}
}

func TestTemplatesUseAllTheirParameters(t *testing.T) {
	reference := regexp.MustCompile(`\$\{(\w+)\}`)
	for name, template := range objects[templatev1.Template](t, "Template") {
		text, err := json.Marshal(template.Objects)
		if err != nil {
			t.Fatal(err)
		}
		inUse, declared := map[string]bool{}, map[string]bool{}
		for _, match := range reference.FindAllSubmatch(text, -1) {
			inUse[string(match[1])] = true
		}
		for _, parameter := range template.Parameters {
			declared[parameter.Name] = true
		}
		if !maps.Equal(inUse, declared) {
			t.Errorf("template %q uses the parameters %v, but defines %v", name, inUse, declared)
		}
		if template.Name != name {
			t.Errorf("template %q has the name %q", name, template.Name)
		}
	}
}

// metric matches a metric name with its labels, or a function name with its opening parenthesis.
var metric = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+\b(\{[^}]*\}|\()?`)

// Tenants' services can expose metrics with any name. If an alerting rule trusted such a metric, a
// tenant could trigger or suppress the alert.
func TestAlertsTrustOnlyMetricsOfPlatform(t *testing.T) {
	template := objects[templatev1.Template](t, "Template")["prometheus-persistent"]
	var rules struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	for _, raw := range template.Objects {
		var config struct {
			Kind string
			Data map[string]string
		}
		if err := json.Unmarshal(raw.Raw, &config); err != nil {
			t.Fatal(err)
		}
		if config.Kind == "ConfigMap" {
			if err := yaml.Unmarshal([]byte(config.Data["cluster.rules.yml"]), &rules); err != nil {
				t.Fatal(err)
			}
		}
	}
	checked := 0
	for _, group := range rules.Groups {
		for _, rule := range group.Rules {
			for _, match := range metric.FindAllStringSubmatch(rule.Expr, -1) {
				if match[1] == "(" {
					continue
				}
				if checked++; !strings.Contains(match[1], `job=`) {
					t.Errorf("alert %s trusts %s of any service", rule.Alert, match[0])
				}
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d metrics are checked", checked)
	}
}
