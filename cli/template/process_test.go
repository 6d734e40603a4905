package template

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestProcess(t *testing.T) {
	factory := objectstest.NewServer(t, nil).Factory(t)
	const objects = `{range .items[*]}{.metadata.name}/{.metadata.labels.app} {.spec.replicas}{.data.password} {end}`
	for _, test := range []struct {
		name    string
		args    []string
		want    string // standard output
		failure string // part of the message
		warning string // part of standard error
	}{
		{name: "values of arguments and flags", args: []string{"NAME=a", "-p", "PASSWORD=p", "-o", "jsonpath=" + objects}, want: "a/a p a/a 2 "},
		{name: "values of a file", args: []string{"--param-file=testdata/values.env", "-o", "jsonpath=" + objects}, want: `shop/shop a\nb shop/shop 3 `},
		{
			name: "a flag has precedence", args: []string{"--param-file=testdata/values.env", "-p", "NAME=x", "-o", "jsonpath=" + objects}, want: `x/x a\nb x/x 3 `,
			warning: `"NAME" already defined, ignoring value from file`,
		},
		{name: "a label replaces the label of the template", args: []string{"-l", "app=mine", "-p", "PASSWORD=p", "-o", "jsonpath=" + objects}, want: "web/mine p web/mine 2 "},
		{name: "names", args: []string{"-o", "name"}, want: "configmap/web\ndeploymentconfig.apps.openshift.io/web\n"},
		{name: "template of the flag -t", args: []string{"-p", "PASSWORD=p", "-t", "{{range .items}}{{.kind}} {{end}}"}, want: "ConfigMap DeploymentConfig "},
		{name: "raw", args: []string{"--raw", "-o", "jsonpath={.kind}"}, want: "Template"},
		{
			name: "parameters", args: []string{"--parameters"},
			want: "NAME       DESCRIPTION               GENERATOR    VALUE\nNAME       Name of the application                web\nREPLICAS                                          2\nPASSWORD                             expression   [a-z]{8}\n",
		},
		{name: "parameters and values", args: []string{"--parameters", "-p", "NAME=a"}, failure: "can't be used with --param"},
		{name: "unknown parameters", args: []string{"-p", "B=1", "-p", "A=1"}, failure: "unknown parameter name \"A\"\nunknown parameter name \"B\""},
		{name: "ignored parameters", args: []string{"-p", "B=1", "--ignore-unknown-parameters", "-o", "jsonpath={.items[0].kind}"}, want: "ConfigMap"},
		{name: "parameter set twice", args: []string{"NAME=a", "-p", "NAME=b"}, failure: "provided more than once: NAME"},
		{name: "parameter without value", args: []string{"-p", "NAME"}, failure: "must be NAME=VALUE"},
		{name: "replicas that are not a number", args: []string{"-p", "REPLICAS=many", "-o", "jsonpath={.items[1].spec.replicas}"}, want: "many"},
		{name: "invalid labels", args: []string{"-l", "a"}, failure: "error parsing labels"},
		{name: "missing file of values", args: []string{"--param-file=testdata/missing"}, failure: "read values: open testdata/missing"},
		{name: "name and file", args: []string{"app"}, failure: "not both"},
	} {
		t.Run(test.name, func(t *testing.T) {
			errOut := objectstest.Check(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				return NewProcess(factory, streams)
			}, test.want, test.failure, append([]string{"--local", "-f", "testdata/app.yaml"}, test.args...)...)
			if !strings.Contains(errOut, test.warning) {
				t.Errorf("the command prints %q, want the warning %q", errOut, test.warning)
			}
		})
	}
}

func TestProcessWithoutTemplateFails(t *testing.T) {
	factory := objectstest.NewServer(t, nil).Factory(t)
	for _, test := range []struct {
		name    string
		args    []string
		failure string
	}{
		{"nothing", nil, "Must pass a filename or name of stored template"},
		{"local without file", []string{"app", "--local"}, "--local needs"},
		{"two names", []string{"app", "other"}, "only once: other"},
		{"two files", []string{"--local", "-f", "a", "-f", "b"}, "only one template file"},
		{"object that is not a template", []string{"--local", "-f", "testdata/configmap.yaml"}, "not a valid Template but a ConfigMap"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, failure := objectstest.Execute(t, func(streams genericiooptions.IOStreams) *cobra.Command { return NewProcess(factory, streams) }, test.args...)
			if !strings.Contains(failure, test.failure) {
				t.Errorf("the command failed with %q, want %q", failure, test.failure)
			}
		})
	}
}

func TestLocate(t *testing.T) {
	for text, want := range map[string]string{
		"app": "shop/app", "openshift//app": "openshift/app", "template/app": "shop/app", "openshift/templates/app": "openshift/app",
		"templates.template.openshift.io/app": "shop/app", "": "", "dc/app": "", "a/b/c": "", "openshift//": "", "a/b/c/d": "",
	} {
		project, name, err := Locate(text, "shop")
		if got := project + "/" + name; err == nil && got != want || err != nil && want != "" {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestValues(t *testing.T) {
	for _, test := range []struct{ name, text, want, failure string }{
		{"double quotes", `A="b\nc"`, "b\nc", ""},
		{"single quotes", `A='b"c'`, `b"c`, ""},
		{"an unterminated quote", `A="b`, `"b`, ""},
		{"spaces", "  export A = b c ", "b c", ""},
		{"an equals sign in the value", "A=b=c", "b=c", ""},
		{"the last line has precedence", "A=1\nA=2", "2", ""},
		{"no value", "\n# comment\nA", "", `line 3: invalid parameter assignment`},
		{"a space in the name", "A B=1", "", "line 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			values, err := Values("parameter", nil, []string{stdin}, strings.NewReader(test.text), &bytes.Buffer{})
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("error %v, want %q", err, test.failure)
				}
				return
			}
			if err != nil || values["A"] != test.want {
				t.Errorf("%q, %v, want %q", values["A"], err, test.want)
			}
		})
	}
}
