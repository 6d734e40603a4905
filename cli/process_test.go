package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTemplatesAreProcessedLocally processes a template without a server, and compares the objects
// with golden files.
func TestTemplatesAreProcessedLocally(t *testing.T) {
	values := filepath.Join(t.TempDir(), "values.env")
	if err := os.WriteFile(values, []byte("# of the test\nHOST=shop.example.com\nPASSWORD='a b#c'\nNAME=other\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string]string{
		"list":       "-p HOST=a.example.com PASSWORD=secret -p REPLICAS=3",
		"raw":        "-p HOST=a.example.com -p PASSWORD=secret --raw -o yaml",
		"file":       "--param-file " + values + " -p NAME=back -l app=mine,tier=web -o yaml",
		"unknown":    "-p HOST=a.example.com -p PASSWORD=secret -p OTHER=1 --ignore-unknown-parameters -o yaml",
		"parameters": "--parameters",
		"name":       "-p HOST=a.example.com PASSWORD=secret -o name",
		"describe":   "-p HOST=a.example.com -p PASSWORD=secret -o describe",
		"template":   "-p HOST=a.example.com -p PASSWORD=secret -t {{range.items}}{{.kind}},{{end}}",
	} {
		stdout, stderr, code := client(t, "oc", nil, append(strings.Fields("process --local -f testdata/template.yaml"), strings.Fields(args)...)...)
		if code != 0 {
			t.Errorf("oc process %s: code %d, %s", args, code, stderr)
			continue
		}
		Golden(t, "process-"+name+".golden", stdout)
		if name == "file" && !strings.Contains(stderr, `warning: parameter "NAME" already defined, ignoring value from file`) {
			t.Errorf("no warning about the unused value: %q", stderr)
		}
	}
}

func TestProcessReportsInvalidTemplates(t *testing.T) {
	const local = "--local -f testdata/template.yaml "
	for args, want := range map[string]string{
		"":                                   "Must pass a filename or name of stored template",
		"a -f testdata/template.yaml":        "not both",
		"a b":                                "template name must be specified only once: b",
		"--local a":                          "--local needs the template's file",
		"a/b/c/d -n shop":                    "must be NAME or PROJECT//NAME",
		"svc/a -n shop":                      "must be NAME or PROJECT//NAME",
		local:                                "parameter HOST is required and must be specified",
		local + "-p HOST=1 -p HOST=2":        "provided more than once: HOST",
		local + "-p OTHER=1":                 `unknown parameter name "OTHER"`,
		local + "-p OTHER":                   `invalid parameter assignment in parameter "OTHER"`,
		local + "--param-file none":          "none: no such file",
		local + "--parameters -o yaml":       "can't be used with --output",
		local + "-l a -p HOST=x":             "error parsing labels",
		"--local -f testdata/convert.yaml":   "objects, but must be one Template",
		"--local -f testdata/set-env.golden": "not a valid Template but a DeploymentConfig",
	} {
		if _, stderr, code := client(t, "oc", nil, append([]string{"process"}, strings.Fields(args)...)...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc process %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
