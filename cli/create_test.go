package cli

import (
	"strings"
	"testing"
)

// TestObjectsAreCreatedFromFlags runs `oc create` commands without a server, and compares the
// objects with golden files.
func TestObjectsAreCreatedFromFlags(t *testing.T) {
	for name, args := range map[string]string{
		"clusterquota":    "clusterquota for-bob --project-annotation-selector=openshift.io/requester=bob --project-label-selector=a=b --hard=pods=10 --hard=secrets=20,requests.cpu=500m",
		"imagestream":     "is app --lookup-local",
		"imagestreamtag":  "istag app:v1 --from-image=registry.example.com/app:v1 --scheduled --insecure -A description=First",
		"imagestreamtag2": "imagestreamtag app:v2 --from=other/app:v1 --reference-policy=local",
		"dc":              "deploymentconfig front --image=nginx",
		"route-edge":      "route edge --service=front --hostname=www.example.com --path=/shop --port=8080 --insecure-policy=Redirect",
		"route-pass":      "route passthrough tunnel --service=front --wildcard-policy=Subdomain",
		"route-reencrypt": "route reencrypt --service=front --port=web",
		"identity":        "identity ldap:alice",
	} {
		stdout, stderr, code := client(t, "oc", nil, append([]string{"create", "-n", "shop", "--dry-run=client", "-o", "yaml"}, strings.Fields(args)...)...)
		if code != 0 {
			t.Errorf("oc create %s: code %d, %s", args, code, stderr)
			continue
		}
		Golden(t, "create-"+name+".golden", stdout)
	}
}

func TestCreateReportsInvalidFlags(t *testing.T) {
	for args, want := range map[string]string{
		"clusterquota x --hard=pods=1":                            "--project-label-selector",
		"clusterquota x --project-label-selector=a=b --hard=pods": `--hard "pods"`,
		"istag app --from=other:v1":                               `"app" must be of the form <stream_name>:<tag>`,
		"istag app:v1 -A foo":                                     `annotations must be of the form key=value, but is "foo"`,
		"istag app:v1 --from=a:b --from-image=c":                  "--from and --from-image may not be used together",
		"istag app:v1 --from=a:b --reference-policy=nearby":       `"nearby", must be source or local`,
		"dc front":         "--image",
		"route edge front": "--service",
		"route edge front --service=a --cert=/nonexistent":        "--cert",
		"route passthrough front --service=a --cert=/nonexistent": "unknown flag: --cert",
		"identity alice": "<PROVIDER_NAME>:<PROVIDER_USER_NAME>",
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"create", "-n", "shop", "--dry-run=client"}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc create %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}

func TestTypesExplainsConcepts(t *testing.T) {
	stdout, _, _ := client(t, "oc", nil, "types")
	Golden(t, "types.golden", stdout)
}

func TestHintsContainProgramName(t *testing.T) {
	for args, want := range map[string]string{
		"get": `Use "oc api-resources"`, "describe": `Use "oc api-resources"`, "explain": "oc api-resources", "plugin list": "any oc plugins",
	} {
		stdout, stderr, code := client(t, "oc", []string{"PATH=/nonexistent"}, append([]string{"-n", "a"}, strings.Fields(args)...)...)
		if code == 0 || !strings.Contains(stdout+stderr, want) || strings.Contains(stdout+stderr, "kubectl") {
			t.Errorf("oc %s: code %d, %q, want %q", args, code, stdout+stderr, want)
		}
	}
}

func TestManifestsAreConverted(t *testing.T) {
	const old = "testdata/convert.yaml"
	for output, file := range map[string]string{"yaml": "convert.golden", "json": "convert-json.golden"} {
		stdout, stderr, code := client(t, "oc", nil, "convert", "-f", old, "-o", output)
		if code != 0 || strings.Count(stderr, "Warning: ") != 2 {
			t.Errorf("code %d, stderr %q", code, stderr)
		}
		Golden(t, file, stdout)
	}
	if _, stderr, code := client(t, "oc", nil, "convert", "-f", "/nonexistent"); code == 0 || !strings.Contains(stderr, `file "/nonexistent" does not exist`) {
		t.Errorf("missing file: code %d, %q", code, stderr)
	}
}

func TestVersionHasFormatOfOpenShift3(t *testing.T) {
	stdout, stderr, code := client(t, "oc", nil, "version", "--client")
	lines := strings.Split(stdout, "\n")
	if code != 0 || len(lines) != 4 || !strings.HasPrefix(lines[0], "oc v") || !strings.HasPrefix(lines[1], "kubernetes v") || lines[2] != "features: Basic-Auth" {
		t.Errorf("code %d, %q, stderr %q", code, stdout, stderr)
	}
	if stdout, _, _ := client(t, "oc", nil, "version", "--client", "-o", "json"); !strings.Contains(stdout, `"clientVersion"`) {
		t.Errorf("as JSON: %s", stdout)
	}
}
