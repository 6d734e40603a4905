package migrate

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	registryname "github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestImageReferencesAreMapped(t *testing.T) {
	for mapping, pairs := range map[string][2]string{
		"a.example.com/*=b.example.com/*":      {"a.example.com/team/app:v1", "b.example.com/team/app:v1"},
		"a.example.com:5000/*=b.example.com/*": {"a.example.com:5000/app@sha256:1", "b.example.com/app@sha256:1"},
		"*/team/app=b.example.com/app":         {"a.example.com/team/app:v1", "b.example.com/app:v1"},
		"a.example.com/team/app=*/other":       {"a.example.com/team/app:v1", "a.example.com/other:v1"},
		"c.example.com/*=b.example.com/*":      {"a.example.com/app", "a.example.com/app"},
		"a.example.com/app=b.example.com/app":  {"a.example.com/apps", "a.example.com/apps"},
		docker() + "/*=b.example.com/*":        {"team/app:v1", "b.example.com/team/app:v1"},
		docker() + "/ruby=*/python":            {"ruby:2.5", "python:2.5"},
		docker() + "/app=b.example.com/app":    {docker() + "/app@sha256:1", "b.example.com/app@sha256:1"},
		"team/*=b.example.com/*":               {"team/app", "team/app"},
		"*/*=b.example.com/*":                  {"a.example.com/app:v1", "b.example.com/app:v1"},
		docker() + "/mysql=b.example.com/db":   {docker() + "/library/mysql@sha256:1", "b.example.com/db@sha256:1"},
		docker() + "/mysql=b.example.com/*":    {"mysql@sha256:1", "b.example.com/mysql@sha256:1"},
	} {
		read, err := parseMappings([]string{mapping})
		if err != nil {
			t.Errorf("%s: %v", mapping, err)
		}
		if got := read.image(pairs[0]); got != pairs[1] {
			t.Errorf("%s: %q becomes %q, want %q", mapping, pairs[0], got, pairs[1])
		}
	}
	for mapping, want := range map[string]string{
		"a": "all arguments must be", "a/b": "all arguments", "a=b/c": "all arguments", "a/=b/c": "not a valid source", "/a=b/c": "not a valid source", "a/*=b/": "not a valid target",
		"a/*=*/*": "at least one change", "*/*=*/*": "at least one change", "a/b=a/b": "at least one field", "a/b:1=c/d": "remove them",
	} {
		if _, err := parseMapping(mapping); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", mapping, err, want)
		}
	}
}

func TestCredentialLocationsAreMapped(t *testing.T) {
	all, err := parseMappings([]string{"old.example.com/team=new.example.com/group", "old.example.com:5000/*=new.example.com/*", docker() + "/*=mirror.example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	for place, want := range map[string]string{
		"old.example.com:5000":                             "new.example.com",
		"https://old.example.com:5000/v2/":                 "new.example.com",
		"old.example.com:5000/any":                         "new.example.com/any",
		"old.example.com/team":                             "new.example.com/group",
		"old.example.com":                                  "old.example.com",
		"https://" + registryname.DefaultRegistry + "/v1/": "mirror.example.com",
		"https://other.example.com/v1/":                    "https://other.example.com/v1/",
	} {
		if got := all.account(place); got != want {
			t.Errorf("%s becomes %s, want %s", place, got, want)
		}
	}
}

// object parses an object from YAML. For a secret, the data in the YAML is plain text, which object
// encodes in Base64.
func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	for key, value := range object.Object {
		data, ok := value.(map[string]any)
		if key != "data" || !ok {
			continue
		}
		for name, content := range data {
			data[name] = base64.StdEncoding.EncodeToString([]byte(content.(string)))
		}
	}
	return object
}

func TestImageReferencesAreMigrated(t *testing.T) {
	all, err := parseMappings([]string{"old.example.com/*=new.example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"{kind: Image, dockerImageReference: old.example.com/app@sha256:1}",
		"{kind: ImageStream, spec: {dockerImageRepository: old.example.com/app, tags: [{name: a, from: {kind: ImageStreamTag, name: b}}, " +
			"{name: b, from: {kind: DockerImage, name: 'old.example.com/app:b'}}, {name: c}]}, " +
			"status: {tags: [{tag: b, items: [{dockerImageReference: old.example.com/app@sha256:1}]}]}}",
		"{kind: BuildConfig, spec: {strategy: {dockerStrategy: {from: {kind: DockerImage, name: old.example.com/base}}}, " +
			"output: {to: {kind: DockerImage, name: old.example.com/app}}, source: {images: [{from: {kind: DockerImage, name: old.example.com/tools}}]}}}",
		"{kind: Pod, spec: {initContainers: [{image: old.example.com/init}], containers: [{image: old.example.com/app}, {image: other}]}}",
		"{kind: DeploymentConfig, spec: {template: {spec: {containers: [{image: old.example.com/app}]}}}}",
		"{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{image: old.example.com/app}]}}}}}}",
		`{kind: Secret, type: kubernetes.io/dockercfg, data: {.dockercfg: '{"old.example.com":{"auth":"eDp5"},"third.example.com":{"auth":"a"}}'}}`,
		`{kind: Secret, type: kubernetes.io/dockerconfigjson, data: {.dockerconfigjson: '{"auths":{"old.example.com":{"auth":"eDp5"}},"credsStore":"x"}'}}`,
	} {
		got, want := object(t, text), object(t, strings.ReplaceAll(text, "old", "new"))
		if changed, err := (references{all}).change(got); err != nil || !changed {
			t.Errorf("%s: %t, %v", text, changed, err)
		}
		if diff := cmp.Diff(want.Object, got.Object); diff != "" {
			t.Errorf("%s:\n%s", text, diff)
		}
		if changed, err := (references{all}).change(got); err != nil || changed {
			t.Errorf("again: %s: %t, %v", text, changed, err)
		}
	}
}

func TestOtherFieldsAreNotMigrated(t *testing.T) {
	all, err := parseMappings([]string{"old.example.com/*=new.example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	const credentials = `{kind: Secret, type: kubernetes.io/dockercfg, data: {.dockercfg: '{"old.example.com":{"auth":"1"},"new.example.com":{"auth":"2"}}'}}`
	for text, want := range map[string]string{
		"{kind: Secret, type: Opaque, data: {.dockercfg: old.example.com}}": "",
		credentials: "",
		"{kind: Secret, type: kubernetes.io/dockercfg, data: {.dockercfg: s3cret}}":        "no credentials",
		"{kind: Service, spec: {externalName: old.example.com}}":                           errIgnored.Error(),
		"{kind: BuildConfig, spec: {strategy: {dockerStrategy: {}}}}":                      "",
		"{kind: Deployment, spec: {template: {spec: {containers: [{image: 'a/b'}, {}]}}}}": "",
	} {
		changed, err := (references{all}).change(object(t, text))
		if changed || want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("%s: %t, %v", text, changed, err)
		}
	}
}

// TestCredentialsWithSameNewLocationAreKept ensures that no credentials are lost if two locations
// are replaced with the same location.
func TestCredentialsWithSameNewLocationAreKept(t *testing.T) {
	all, err := parseMappings([]string{"a.example.com/*=c.example.com/*", "b.example.com/*=c.example.com/*"})
	if err != nil {
		t.Fatal(err)
	}
	for before, want := range map[string]string{
		`{"a.example.com":{"auth":"a"},"b.example.com":{"auth":"b"}}`:                                 `{"b.example.com":{"auth":"b"},"c.example.com":{"auth":"a"}}`,
		`{"a.example.com":{"auth":"a"},"https://a.example.com/v1/":{"auth":"a"}}`:                     `{"c.example.com":{"auth":"a"},"https://a.example.com/v1/":{"auth":"a"}}`,
		`{"a.example.com":{"auth":"a"},"b.example.com":{"auth":"b"},"c.example.com":{"auth":"mine"}}`: `{"a.example.com":{"auth":"a"},"b.example.com":{"auth":"b"},"c.example.com":{"auth":"mine"}}`,
	} {
		for range 10 { // a map's order is random
			secret := object(t, "{kind: Secret, type: kubernetes.io/dockercfg, data: {.dockercfg: '"+before+"'}}")
			changed, err := references{all}.change(secret)
			if err != nil || changed != (before != want) {
				t.Errorf("%s: changed %v, error %v", before, changed, err)
			}
			text, _, _ := unstructured.NestedString(secret.Object, "data", ".dockercfg")
			if got, err := base64.StdEncoding.DecodeString(text); err != nil || string(got) != want {
				t.Fatalf("%s: got %s, want %s; error %v", before, got, want, err)
			}
		}
	}
}
