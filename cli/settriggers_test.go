package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// local runs `oc set` on the objects in a file in testdata, without a server.
func local(t *testing.T, file, args string, more ...string) (stdout, stderr string, code int) {
	t.Helper()
	words := strings.Fields(args)
	words = append([]string{"set", words[0], "--local", "-f", "testdata/" + file}, words[1:]...)
	return client(t, "oc", nil, append(words, more...)...)
}

// stored writes objects to a file and returns its path.
func stored(t *testing.T, objects string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "objects.yaml")
	if err := os.WriteFile(file, []byte(objects), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTriggersOfBuildsAreSet(t *testing.T) {
	const show = `jsonpath={range .spec.triggers[*]}{.type}{" "}{.imageChange.from.name}{.imageChange.paused}{"\n"}{end}`
	for args, want := range map[string]string{
		"--from-config":                   "ConfigChange\n",
		"--from-image=ruby:2.5":           "ImageChange\n",
		"--from-image=shop/ruby:2.5":      "ImageChange\n",
		"--from-image=other:1 --manual":   "ImageChange other:1true\n",
		"--from-github --from-gitlab":     "GitHub\nGitLab\n",
		"--from-webhook --from-bitbucket": "Bitbucket\nGeneric\n",
		"--from-webhook-allow-env --auto": "Generic\n",
		"--auto":                          "ConfigChange\nImageChange\n",
		"--remove-all":                    "",
	} {
		stdout, stderr, code := local(t, "set-build.yaml", "triggers "+args, "-o", show)
		if got := strings.ReplaceAll(stdout, " \n", "\n"); code != 0 || got != want {
			t.Errorf("oc set triggers %s: code %d, %s\n%s\nwant\n%s", args, code, stderr, got, want)
		}
	}
	for args, want := range map[string]string{
		"--from-image=a:1 -c web": "no containers", "--from-image=a/b/c:1": "PROJECT/STREAM:TAG", "--remove-all --from-config": "--remove-all without",
	} {
		if _, stderr, code := local(t, "set-build.yaml", "triggers "+args); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc set triggers %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, stderr, code := local(t, "set.yaml", "triggers --from-github"); code == 0 || !strings.Contains(stderr, "only build configs") {
		t.Errorf("a web hook of a deployment: code %d, %q", code, stderr)
	}
}

func TestTriggersOfBuildsAreListedAndRemoved(t *testing.T) {
	stdout, stderr, code := local(t, "set-build.yaml", "triggers --from-config --from-image=other:1 --from-github --from-webhook-allow-env", "-o", "yaml")
	secrets := regexp.MustCompile(`secret: (\S{16,})`).FindAllStringSubmatch(stdout, -1)
	if code != 0 || len(secrets) != 2 || secrets[0][1] == secrets[1][1] || !strings.Contains(stdout, "allowEnv: true") {
		t.Fatalf("code %d, %s\n%s", code, stderr, stdout)
	}
	file := stored(t, stdout)
	read := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := client(t, "oc", nil, append([]string{"set", "triggers", "--local", "-f", file}, args...)...)
		if code != 0 {
			t.Errorf("oc set triggers %v: code %d, %s", args, code, stderr)
		}
		return stdout
	}
	output := strings.Join(strings.Fields(read()), " ")
	for _, want := range []string{
		"NAME TYPE VALUE AUTO", "buildconfigs/front config true", "buildconfigs/front image other:1 true",
		"buildconfigs/front github " + secrets[0][1], "buildconfigs/front webhook " + secrets[1][1],
	} {
		if !strings.Contains(output, want) {
			t.Errorf("%q is missing in %s", want, output)
		}
	}
	const types = `jsonpath={.spec.triggers[*].type}`
	if got := read("--remove", "--from-github", "--from-config", "-o", types); got != "Generic ImageChange" {
		t.Errorf("after GitHub and config change triggers were removed: %q", got)
	}
	if got := read("--remove", "--from-image=other:1", "-o", types); got != "GitHub Generic ConfigChange" {
		t.Errorf("after the image trigger was removed: %q", got)
	}
	if got := read("--manual", "-o", types); got != "GitHub Generic ImageChange" {
		t.Errorf("with manual triggers: %q", got)
	}
	file = stored(t, read("--remove-all", "-o", "yaml"))
	if output := strings.Join(strings.Fields(read()), " "); !strings.Contains(output, "config false buildconfigs/front image ruby:2.5 false") {
		t.Errorf("after all triggers were removed, the list does not contain the image of the strategy: %s", output)
	}
	if got := read("--auto", "-o", types); got != "ConfigChange ImageChange" {
		t.Errorf("after the triggers were enabled again: %q", got)
	}
}

func TestTriggersOfWorkloadsAreSet(t *testing.T) {
	const show = `jsonpath={.metadata.annotations.image\.openshift\.io/triggers}{"\n"}`
	web := `{"fieldPath":"spec.template.spec.containers[0].image","from":{"kind":"ImageStreamTag","name":"web:latest"},"of":"ours"}`
	for args, want := range map[string][]string{
		"--from-image=app:1 -c web,first": {
			`[` + web + `,{"fieldPath":"spec.template.spec.containers[?(@.name==\"web\")].image","from":{"kind":"ImageStreamTag","name":"app:1"}},` +
				`{"fieldPath":"spec.template.spec.initContainers[?(@.name==\"first\")].image","from":{"kind":"ImageStreamTag","name":"app:1"}}]`,
			`"spec.jobTemplate.spec.template.spec.containers[?(@.name==\"web\")].image"`,
		},
		"--from-image=other/app:1 -c side --manual": {`"name":"app:1","namespace":"other"},"paused":true}]`},
		"--manual":                         {`[` + strings.TrimSuffix(web, "}") + `,"paused":true}]`},
		"--from-image=web:latest --remove": {"\n\n"},
		"--remove-all":                     {"\n\n"},
	} {
		stdout, stderr, code := local(t, "set-workloads.yaml", "triggers "+args, "-o", show)
		for _, part := range want {
			if !strings.Contains(stdout, part) && stdout != part {
				t.Errorf("oc set triggers %s: code %d, %s\n%s\nhas no %s", args, code, stderr, stdout, part)
			}
		}
	}
	for args, want := range map[string]string{
		"--from-image=app:1":         "--containers",
		"--from-image=app:1 -c none": "not all container names exist: none (accepts: first, web, side)",
		"--from-config":              "config change trigger cannot be disabled",
		"--from-github":              "only build configs",
		"--auto":                     "only deployment configs, build configs, deployments",
	} {
		if _, stderr, code := local(t, "set-workloads.yaml", "triggers "+args); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc set triggers %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}

func TestImageLookupIsSetAndListed(t *testing.T) {
	const show = `jsonpath={.spec.lookupPolicy.local}{.metadata.annotations.alpha\.image\.policy\.openshift\.io/resolve-names}{` +
		`.spec.template.metadata.annotations.alpha\.image\.policy\.openshift\.io/resolve-names}{` +
		`.spec.jobTemplate.spec.template.metadata.annotations.alpha\.image\.policy\.openshift\.io/resolve-names}{" "}`
	stdout, stderr, code := local(t, "set-workloads.yaml", "image-lookup", "-o", show)
	if code != 0 || stdout != "** ** true " {
		t.Errorf("code %d, %s: %q", code, stderr, stdout)
	}
	stdout, _, _ = local(t, "set-workloads.yaml", "image-lookup", "-o", "yaml")
	file := stored(t, stdout)
	read := func(args ...string) string {
		t.Helper()
		stdout, stderr, code := client(t, "oc", nil, append([]string{"set", "image-lookup", "--local", "-f", file}, args...)...)
		if code != 0 {
			t.Errorf("oc set image-lookup %v: code %d, %s", args, code, stderr)
		}
		return stdout
	}
	if got := strings.Join(strings.Fields(read("--list")), " "); got != "NAME LOCAL deployment.apps/front true cronjob.batch/nightly true web true" {
		t.Errorf("the list is %s", got)
	}
	if got := read("--enabled=false", "-o", show); got != "  false " {
		t.Errorf("after the lookup was disabled: %q", got)
	}
	if stdout, _, _ := local(t, "set-workloads.yaml", "image-lookup --list"); !strings.Contains(stdout, "front") || !strings.Contains(stdout, "false") {
		t.Errorf("without an annotation, workloads are listed as\n%s", stdout)
	}
}
