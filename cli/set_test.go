package cli

import (
	"strings"
	"testing"
)

// TestDeploymentConfigsAreSet runs commands below `oc set` without a server; the golden files have the objects.
func TestDeploymentConfigsAreSet(t *testing.T) {
	for name, args := range map[string]string{
		"env":            "set env A=b",
		"old-env":        "env A=b -c side",
		"image":          "set image web=registry.example.com/web:2",
		"resources":      "set resources -c side --limits=cpu=200m,memory=64Mi",
		"probe-url":      "set probe -c web --readiness --get-url=https://:8443/healthz?full=1 --period-seconds=5",
		"probe-tcp":      "set probe --liveness --open-tcp=http --initial-delay-seconds=0",
		"probe-numbers":  "set probe -c w* --liveness --failure-threshold=7",
		"probe-command":  "set probe -c side --liveness --startup -- test -e /tmp/alive",
		"probe-remove":   "set probe --liveness --remove",
		"triggers":       "set triggers --manual",
		"triggers-image": "set triggers --from-image=side:latest -c side --manual",
		"triggers-other": "set triggers --from-image=shop/web:latest --remove",
		"triggers-none":  "set triggers --remove-all",
		"volume":         "set volume --add --name=data --type=persistentVolumeClaim --claim-name=data --mount-path=/data/ --overwrite",
		"volume-empty":   "set volumes --add --name=scratch -m /scratch -c side --read-only --sub-path=a",
		"volume-change":  "set volume --add --name=old --overwrite -t secret --secret-name=keys",
		"volume-move":    "set volume --add --name=old --overwrite -m /elsewhere",
		"volume-remove":  "set volume --remove --name=old",
	} {
		words := strings.Fields(args)
		at := 1
		if words[0] == "set" {
			at = 2
		}
		words = append(words[:at:at], append([]string{"--local", "-f", "testdata/set.yaml", "-o", "yaml"}, words[at:]...)...)
		stdout, stderr, code := client(t, "oc", nil, words...)
		if code != 0 {
			t.Errorf("oc %s: code %d, %s", args, code, stderr)
			continue
		}
		golden(t, "set-"+name+".golden", stdout)
	}
	for name, command := range map[string]string{"list": "triggers", "volumes": "volume"} {
		stdout, stderr, code := client(t, "oc", nil, "set", command, "--local", "-f", "testdata/set.yaml")
		if code != 0 {
			t.Errorf("oc set %s: code %d, %s", command, code, stderr)
			continue
		}
		golden(t, "set-"+name+".golden", stdout)
	}
}

// TestBuildConfigsAreSet does the same with a BuildConfig.
func TestBuildConfigsAreSet(t *testing.T) {
	for name, args := range map[string]string{
		"build-secret":        "build-secret --push --pull --source login",
		"build-secret-remove": "build-secret --source --remove",
		"build-hook":          "build-hook --post-commit --command -- rake test --verbose",
	} {
		words := strings.Fields(args)
		words = append([]string{"set", words[0], "--local", "-f", "testdata/set-build.yaml", "-o", "yaml"}, words[1:]...)
		stdout, stderr, code := client(t, "oc", nil, words...)
		if code != 0 {
			t.Errorf("oc set %s: code %d, %s", args, code, stderr)
			continue
		}
		golden(t, "set-"+name+".golden", stdout)
	}
}

func TestWhatCannotBeSetIsNamed(t *testing.T) {
	for args, want := range map[string]string{
		"probe":                                    "--readiness, --liveness or --startup",
		"probe --liveness --open-tcp=1 --remove":   "only one of",
		"probe --readiness --period-seconds=1":     `container "web" has no readiness probe`,
		"probe --readiness -c x --open-tcp=1":      `no container "x"`,
		"probe --readiness --get-url=ftp://a/":     "must begin with http://",
		"build-secret --push login":                "only build configs",
		"build-secret login":                       "--push, --pull or --source",
		"build-hook --script=true":                 "--post-commit",
		"build-hook --post-commit":                 "--script",
		"triggers --auto --manual":                 "only one of --auto and --manual",
		"triggers --from-image=side":               "must be STREAM:TAG",
		"triggers --from-image=side:1":             "--containers",
		"triggers --from-image=side:1 -c a":        `no container "a"`,
		"triggers --remove":                        "--from-config or --from-image",
		"volume --add --remove":                    "only one of --add and --remove",
		"volume --remove":                          "--confirm",
		"volume --remove --name=x":                 `no volume "x"`,
		"volume --add -t pvc":                      "needs --claim-name",
		"volume --add -t nfs":                      `"nfs"`,
		"volume --add -m data":                     "must begin with a slash",
		"volume --add --name=old -t emptyDir":      "--overwrite",
		"volume --add -m /old":                     `container "web" has a volume at /old already`,
		"image x=registry.example.com/missing:1.0": `container named "x"`,
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"set"}, append(strings.Fields(args), "--local", "-f", "testdata/set.yaml")...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc set %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	if _, stderr, code := client(t, "oc", nil, "set", "probe", "--liveness", "--remove"); code == 0 || !strings.Contains(stderr, "TYPE/NAME") {
		t.Errorf("without an object: code %d, %q", code, stderr)
	}
	for args, want := range map[string]string{
		"rollout latest svc/front": "svc/front is no deployment config", "rollout cancel": "requires at least 1 arg", "rollback": "accepts 1 arg",
	} {
		if _, stderr, code := client(t, "oc", nil, append(strings.Fields(args), "-n", "shop")...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
