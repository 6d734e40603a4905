package ansible

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	imagev1 "github.com/openshift/api/image/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const text = `version: 1.0
name: db-apb
async: optional
bindable: true
plans:
- name: small
  description: A database
  free: true
  parameters:
  - {name: version, type: enum, enum: [9.5, "9.6"], default: "9.6", required: true, updatable: true}
  - {name: user, type: string, pattern: "^[a-z]+$", max_length: 5, title: User, display_group: Account}
  - {name: password, display_type: password, display_group: Account, required: true}
  - {name: size, type: int, minimum: 1, maximum: 9}
  - {name: ratio, type: number}
  - {name: backup, type: boolean, default: false}
`

func image(t *testing.T, text string) *imagev1.Image {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"Config": map[string]any{"Labels": map[string]string{
		specLabel: base64.StdEncoding.EncodeToString([]byte(text)), runtimeLabel: "2",
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return &imagev1.Image{DockerImageMetadata: runtime.RawExtension{Raw: raw}}
}

func parsed(t *testing.T) *bundle {
	t.Helper()
	spec, ok, err := specOf(image(t, text))
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	return &bundle{Namespace: "openshift", Stream: "db-apb", Spec: spec}
}

func TestSpecificationsBecomeServices(t *testing.T) {
	b := parsed(t)
	content, err := json.Marshal(serviceOf(b, b.Spec.Name))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"id":"` + b.id() + `"`, `"name":"db-apb"`, `"bindings_retrievable":true`, `"plan_updateable":true`,
		`"version":{"default":"9.6","enum":["9.5","9.6"],"type":"string"}`,
		`"user":{"maxLength":5,"pattern":"^[a-z]+$","title":"User","type":"string"}`,
		`"size":{"maximum":9,"minimum":1,"type":"integer"}`, `"ratio":{"type":"number"}`, `"backup":{"default":false,"type":"boolean"}`,
		`"required":["version","password"]`,
		`["version",{"items":["user",{"key":"password","type":"password"}],"title":"Account","type":"fieldset"},"size","ratio","backup"]`,
	} {
		if !strings.Contains(string(content), want) {
			t.Errorf("the service lacks %s:\n%s", want, content)
		}
	}
}

func TestInvalidSpecificationErrorsNameField(t *testing.T) {
	for text, want := range map[string]string{
		"name: a":            "plans is empty",
		"plans: [{name: a}]": "name is missing",
		"{name: a, async: maybe, plans: [{name: a}]}":                          `async is "maybe"`,
		"{name: a, plans: [{name: a}, {name: a}]}":                             "not unique",
		"{name: a, plans: [{name: a, parameters: [{name: p, type: list}]}]}":   `unknown type "list"`,
		"{name: a, plans: [{name: a, parameters: [{name: p, pattern: '('}]}]}": `pattern of parameter "p"`,
		"{": "decode label",
	} {
		if _, ok, err := specOf(image(t, text)); !ok || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
	if _, ok, err := specOf(&imagev1.Image{}); ok || err != nil {
		t.Errorf("an image without a label: %v, %v", ok, err)
	}
}

// An image without the runtime label has runtime version 1.
func TestLabelDeterminesRuntime(t *testing.T) {
	for _, tt := range []struct {
		label   string
		runtime int
		want    string
	}{
		{"", 1, ""},
		{"1", 1, ""},
		{"2", 2, ""},
		{"0", 0, "is 0, must be 1 or 2"},
		{"two", 0, "invalid syntax"},
	} {
		bundle := image(t, "{name: a, bindable: true, plans: [{name: a}]}")
		bundle.DockerImageMetadata.Raw = bytes.Replace(bundle.DockerImageMetadata.Raw, []byte(`"2"`), []byte(strconv.Quote(tt.label)), 1)
		spec, _, err := specOf(bundle)
		if spec.Runtime != tt.runtime || (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("runtime %q: %d, %v, want %q", tt.label, spec.Runtime, err, tt.want)
		}
	}
}

func TestCredentialsOfContainerAreDecoded(t *testing.T) {
	for text, want := range map[string]string{
		"eyJ1c2VyIjogImEifQ==\n":     "map[user:a]",
		"":                           "map[]",
		"eyJ1c2VyIjogImEi":           "map[]", // not written completely
		"bnVsbA==":                   "map[]",
		"exec: no such file: secret": "map[]",
	} {
		got, err := decodeCredentials([]byte(text))
		if fmt.Sprint(got) != want || (err == nil) != (want != "map[]") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func TestParametersAreCheckedAndCompleted(t *testing.T) {
	parameters := parsed(t).Spec.Plans[0].Parameters
	values, err := complete(parameters, map[string]any{"password": "s3cret", "size": 2.0})
	if err != nil || !equal(values, map[string]any{"version": "9.6", "password": "s3cret", "size": 2, "backup": false}) {
		t.Errorf("%v, %v", values, err)
	}
	for want, values := range map[string]map[string]any{
		"parameters.password: a value is required":         {},
		"parameters.version: the value must be one of":     {"password": "s3cret", "version": "1"},
		"parameters.user: the value must match":            {"password": "s3cret", "user": "A"},
		"parameters.user: the value must have at most 5":   {"password": "s3cret", "user": "abcdef"},
		"parameters.size: the value must be of type integ": {"password": "s3cret", "size": 1.5},
		"parameters.size: the value must be at most 9":     {"password": "s3cret", "size": 10.0},
		"parameters.size: the value must be at least 1":    {"password": "s3cret", "size": 0.0},
		"parameters.backup: the value must be of type":     {"password": "s3cret", "backup": "yes"},
		"parameters.color: the plan has no such parameter": {"password": "s3cret", "color": "red"},
	} {
		if _, err := complete(parameters, values); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestListsChooseBundles(t *testing.T) {
	for name, tt := range map[string]struct {
		white, black []string
		want         string
	}{
		"no list":    {nil, nil, ""},
		"white list": {[]string{"-apb$"}, nil, "db-apb test-apb"},
		"black list": {nil, []string{"^test-"}, "db-apb nginx"},
		"both":       {[]string{"-apb$"}, []string{"^test-"}, "db-apb"},
		"other name": {[]string{"^none$"}, []string{"^test-"}, ""},
	} {
		all, err := origins(Options{Registries: []Registry{{Name: "hub", Type: ImageRegistry, WhiteList: tt.white, BlackList: tt.black}}})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, stream := range []string{"db-apb", "nginx", "test-apb"} {
			if all[0].offers(stream) {
				got = append(got, stream)
			}
		}
		if text := strings.Join(got, " "); text != tt.want {
			t.Errorf("%s: the broker offers %q, want %q", name, text, tt.want)
		}
	}
}

// An image from a registry must not be able to exhaust the control plane's memory.
func TestLargeSpecificationsAreRejected(t *testing.T) {
	for name, metadata := range map[string]string{
		"many values": "metadata: {a: [" + strings.Repeat("{},", 100_000) + "{}]}\n",
		"long string": "metadata: {a: " + strings.Repeat("a", 1<<20) + "}\n",
		"aliases":     "metadata: {a: &a [" + strings.Repeat("a,", 1000) + "a], b: [" + strings.Repeat("*a,", 1000) + "*a]}\n",
	} {
		if _, ok, err := specOf(image(t, text+metadata)); !ok || err == nil {
			t.Errorf("%s: %v, %v", name, ok, err)
		}
	}
}
