package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestDeploymentConfigsAreSet runs `oc set` commands on a DeploymentConfig without a server, and
// compares the results with golden files.
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
		"volume-mode":    "set volume --add --name=conf -t configMap --configmap-name=conf --default-mode=0755 -m /conf",
		"volume-source":  `set volume --add --name=files --source={"nfs":{"server":"files.example.com","path":"/"}} -m /files`,
		"volume-move":    "set volume --add --name=old --overwrite -m /elsewhere",
		"volume-claim":   "set volume --add --name=data --claim-size=1Gi --claim-mode=rwm --claim-class= --claim-name=data -m /data",
		"volume-remove":  "set volume --remove --name=old",
		"volume-implied": "set volume --add --name=conf --configmap-name=conf -m /conf",
		"old-volume":     "volume --remove --name=old",
		"hook-pre":       "set deployment-hook --pre --volumes=old -e MODE=a=b -e EMPTY= --failure-policy=abort -c side -- migrate --all",
		"hook-post":      "set deployment-hook --post -- notify",
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
		Golden(t, "set-"+name+".golden", stdout)
	}
	if _, stderr, code := client(t, "oc", nil, "set", "volume", "--list", "--name=none", "--local", "-f", "testdata/set.yaml"); code == 0 || !strings.Contains(stderr, `volume "none" not found`) {
		t.Errorf("a missing volume is listed: code %d, %s", code, stderr)
	}
	_, stderr, code := client(t, "oc", nil, "set", "volume", "--add", "--name=a", "-m", "/a", "-c", "none", "--local", "-f", "testdata/set.yaml")
	if code != 0 || !strings.Contains(stderr, `warning: deploymentconfig.apps.openshift.io/front does not have any containers that match "none"`) {
		t.Errorf("no container matches: code %d, %s", code, stderr)
	}
	for name, command := range map[string]string{"list": "triggers", "volumes": "volume --list"} {
		stdout, stderr, code := client(t, "oc", nil, append(strings.Fields("set "+command), "--local", "-f", "testdata/set.yaml")...)
		if code != 0 {
			t.Errorf("oc set %s: code %d, %s", command, code, stderr)
			continue
		}
		Golden(t, "set-"+name+".golden", stdout)
	}
}

// TestBuildConfigsAreSet runs `oc set` commands on a BuildConfig without a server, and compares the
// results with golden files.
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
		Golden(t, "set-"+name+".golden", stdout)
	}
}

func TestEnvironmentOfBuildsIsSet(t *testing.T) {
	for _, strategy := range []string{"dockerStrategy", "sourceStrategy", "customStrategy", "jenkinsPipelineStrategy"} {
		file := filepath.Join(t.TempDir(), "config.yaml")
		text := "{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: front}, spec: {strategy: {" + strategy + ": {env: [{name: A, value: a}, {name: B, value: b}]}}}}"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for args, want := range map[string]string{
			"set env B=2 C=3 A- -o jsonpath={.spec.strategy." + strategy + ".env[*]}": `{"name":"B","value":"2"} {"name":"C","value":"3"}`,
			"set env A- B- -o jsonpath={.spec.strategy." + strategy + "}":             `{}`,
			"env --list": "# buildconfigs/front, container build\nA=a\nB=b\n",
		} {
			stdout, stderr, code := client(t, "oc", nil, append(strings.Fields(args), "--local", "-f", file)...)
			if got := strings.ReplaceAll(stdout, `,"from":{}`, ""); code != 0 || strings.ReplaceAll(got, `{"from":{}}`, "{}") != want {
				t.Errorf("%s, oc %s: code %d, %q, want %q; %s", strategy, args, code, stdout, want, stderr)
			}
		}
		if _, stderr, code := client(t, "oc", nil, "set", "env", "--overwrite=false", "A=2", "--local", "-f", file); code == 0 || !strings.Contains(stderr, "--overwrite is false") {
			t.Errorf("%s is overwritten: code %d, %s", strategy, code, stderr)
		}
	}
}

func TestHooksOfDeploymentsAreRemoved(t *testing.T) {
	stdout, stderr, code := client(t, "oc", nil, "set", "deployment-hook", "--local", "-f", "testdata/set-hook-pre.golden", "-o", "yaml", "--pre", "--remove")
	if code != 0 || strings.Contains(stdout, "execNewPod") || !strings.Contains(stdout, "name: front") {
		t.Errorf("code %d, %s:\n%s", code, stderr, stdout)
	}
}

// TestBackendsOfRoutesAreSet runs `oc set route-backends` on a Route whose backends have the
// weights 90, 10 and 50.
func TestBackendsOfRoutesAreSet(t *testing.T) {
	for args, want := range map[string]string{
		"--zero":                "prod=0 canary=0 dark=0",
		"--equal":               "prod=100 canary=100 dark=100",
		"a=2 b=0":               "a=2 b=0",
		"a=70% b=30%":           "a=70 b=30",
		"only=1":                "only=1",
		"--adjust canary=30":    "prod=90 canary=30 dark=50",
		"--adjust canary=-20":   "prod=90 canary=0 dark=50",
		"--adjust dark=+250":    "prod=90 canary=10 dark=256",
		"--adjust canary=+10%":  "prod=80 canary=20 dark=50",
		"--adjust canary=25%":   "prod=75 canary=25 dark=50",
		"--adjust prod=-10%":    "prod=80 canary=20 dark=50",
		"--adjust dark=100%":    "prod=0 canary=7 dark=100",
		"--adjust canary=-100%": "prod=100 canary=0 dark=50",
		"--adjust prod=+256":    "prod=256 canary=10 dark=50",
		"--adjust canary=+0":    "prod=90 canary=10 dark=50",
	} {
		words := append([]string{"set", "route-backends", "--local", "-f", "testdata/set-route.yaml", "-o",
			`jsonpath={.spec.to.name}={.spec.to.weight}{range .spec.alternateBackends[*]} {.name}={.weight}{end}`}, strings.Fields(args)...)
		if stdout, stderr, code := client(t, "oc", nil, words...); code != 0 || stdout != want {
			t.Errorf("oc set route-backends %s: code %d, %q, want %q; %s", args, code, stdout, want, stderr)
		}
	}
	for args, want := range map[string]string{
		"--zero --equal": "--zero and --equal may not be specified together", "--zero a=1": "with weights", "--adjust a=1 b=2": "one service", "a=+1": "--adjust", "a=1 b=5%": "percentages or weights",
		"a=1 a=2": "twice", "a=257": "up to 256", "--adjust canary=101%": "up to 100", "a=": "expected NAME=WEIGHT", "=1": "expected NAME=WEIGHT", "svc/a=1": "expected NAME=WEIGHT", "a=a": "WEIGHT must be a number",
		"--adjust x=1": "its backends are prod, canary, dark",
	} {
		words := append([]string{"set", "route-backends", "--local", "-f", "testdata/set-route.yaml"}, strings.Fields(args)...)
		if _, stderr, code := client(t, "oc", nil, words...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc set route-backends %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	stdout, _, _ := client(t, "oc", nil, "set", "route-backends", "--local", "-f", "testdata/set-route.yaml")
	Golden(t, "set-backends.golden", stdout)
}

// beforeWords splits a command line into words, and inserts flags before --.
func beforeWords(args string, flags ...string) []string {
	words := strings.Fields(args)
	at := slices.Index(words, "--")
	if at < 0 {
		at = len(words)
	}
	return slices.Insert(words, at, flags...)
}

func TestSetReportsInvalidArguments(t *testing.T) {
	for args, want := range map[string]string{
		"probe":                                  "you must specify one of --readiness, --liveness or both",
		"probe --liveness --open-tcp=1 --remove": "you may only set one of --get-url",
		"probe --readiness --get-url=http://host/":        "port must be specified as part of a url",
		"probe --readiness -c x --open-tcp=1":             `no container "x"`,
		"probe --readiness --get-url=ftp://a/":            "must begin with http://",
		"build-secret --push login":                       "only build configs",
		"build-secret login":                              "--push, --pull or --source",
		"build-hook --script=true":                        "--post-commit",
		"build-hook --post-commit":                        "you must specify either a script or command",
		"triggers --auto --manual":                        "at most one of --auto or --manual",
		"triggers --from-image=side":                      "must be STREAM:TAG",
		"triggers --from-image=side:1":                    "--containers",
		"triggers --from-image=side:1 -c a":               `not all container names exist: a (accepts: web, side)`,
		"triggers --remove":                               "--from-config, --from-image",
		"volume --add --remove":                           "only one of --add, --remove and --list",
		"volume --remove":                                 "--confirm",
		"volume --remove --name=x":                        `no volume "x"`,
		"volume --add -t pvc":                             "needs --claim-name",
		"volume --add -t nfs":                             `"nfs"`,
		"volume --add --claim-size=much":                  "such as 5Gi",
		"volume --add --claim-size=1 -t secret":           "not secret",
		"volume --add --claim-size=1 --claim-mode=x":      "must be ReadWriteOnce",
		"volume --claim-size=1":                           "needs --add",
		"volume --add -t pvc --claim-class=fast":          "needs --claim-size",
		"volume --add --default-mode=0644":                "needs --type secret or configMap",
		"volume --add -t secret --default-mode=rw":        "must be an octal number",
		"volume --add --source={}":                        "is empty",
		`volume --add --source={"nsf":{}}`:                `unknown field "nsf"`,
		`volume --add -t secret --source={"emptyDir":{}}`: "--source cannot be used with --type",
		"volume --add -m data":                            "must begin with a slash",
		"volume --add --name=old -t emptyDir":             "--overwrite",
		"volume --add -m /old":                            `volume mount '/old' already exists for container "web"`,
		"deployment-hook --pre":                           "you must specify a command",
		"deployment-hook -- true":                         "you must specify one of --pre, --mid, or --post",
		"deployment-hook --mid -- true":                   "only the strategy Recreate",
		"deployment-hook --pre --post -- true":            "you may only set one of --pre, --mid, or --post",
		"deployment-hook --pre --remove -c web":           "--remove may not be used with any option",
		"deployment-hook --pre -e =a -- true":             "NAME=VALUE",
		"route-backends --zero":                           "only routes",
		"image x=registry.example.com/missing:1.0":        `container named "x"`,
	} {
		_, stderr, code := client(t, "oc", nil, append([]string{"set"}, beforeWords(args, "--local", "-f", "testdata/set.yaml")...)...)
		if code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc set %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
	for args, want := range map[string]string{
		"--pre -c x -- true": `does not have a container named "x"`, "--pre --volumes x -- a": `does not have a volume named "x"`,
	} {
		words := append([]string{"set", "deployment-hook"}, beforeWords(args, "--local", "-f", "testdata/set.yaml")...)
		if _, stderr, code := client(t, "oc", nil, words...); code != 0 || !strings.Contains(stderr, "warning: ") || !strings.Contains(stderr, want) {
			t.Errorf("oc set deployment-hook %s: code %d, %q, want warning %q", args, code, stderr, want)
		}
	}
	if _, stderr, code := client(t, "oc", nil, "set", "probe", "--liveness", "--remove"); code == 0 || !strings.Contains(stderr, "one or more resources") {
		t.Errorf("without an object: code %d, %q", code, stderr)
	}
	for args, want := range map[string]string{
		"rollout cancel": "requires at least 1 arg", "rollback": "accepts 1 arg",
		"deploy web --latest --retry": "only one of", "deploy web --cancel --follow": "--follow needs", "deploy": "accepts 1 arg",
		"start-build web --from-dir=. --incremental --no-cache=false": "does not support --no-cache, --incremental;",
		"start-build web --from-archive=- --build-loglevel=5 -eA=1":   "does not support --env, --build-loglevel;",
		"start-build web --from-file=/dev/null --build-arg=A=1":       "does not support --build-arg;",
		"rsh": "at least 1 arg", "rsh -t -T web": "only one of -t and -T", "rsh --timeout=0 web": "--timeout",
	} {
		if _, stderr, code := client(t, "oc", nil, append(strings.Fields(args), "-n", "shop")...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("oc %s: code %d, %q, want %q", args, code, stderr, want)
		}
	}
}
