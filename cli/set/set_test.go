package set

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/slipway-platform/slipway/cli/build"
	"github.com/slipway-platform/slipway/cli/deploymentconfig"
	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

// change specifies an `oc set` command and its expected result. The command changes the object in a
// file.
type change struct {
	name string
	// args contains the subcommand and its arguments. file is the name of the object's file in
	// testdata.
	args []string
	file string
	// print is a JSONPath template for the resulting object, and want is the template's output. If
	// print is empty, want is the command's output.
	print, want string
	// failure is a substring of the error message, or "" if the command must succeed.
	failure string
}

// run runs the command of each change, without sending requests.
func run(t *testing.T, changes []change) {
	t.Helper()
	if err := errors.Join(Register(), build.Register(), deploymentconfig.Register()); err != nil {
		t.Fatal(err)
	}
	factory := objectstest.NewServer(t, nil).Factory(t)
	for _, test := range changes {
		t.Run(test.name, func(t *testing.T) {
			args := slices.Clone(test.args)
			if test.file != "" {
				flags := []string{"--local", "-f", "testdata/" + test.file + ".yaml"}
				if test.print != "" {
					flags = append(flags, "-o", "jsonpath="+test.print)
				}
				args = slices.Insert(args, 1, flags...)
			}
			objectstest.Check(t, func(streams genericiooptions.IOStreams) *cobra.Command {
				command := &cobra.Command{Use: "set"}
				command.AddCommand(Commands(factory, streams)...)
				return command
			}, test.want, test.failure, args...)
		})
	}
}

func TestProbe(t *testing.T) {
	const readiness = "{.spec.template.spec.containers[*].readinessProbe}"
	run(t, []change{
		{
			name: "HTTP with a named port", args: []string{"probe", "--readiness", "--get-url=https://:web/ok?all=1", "--period-seconds=5"},
			file: "deploymentconfig", print: readiness,
			want: strings.TrimSpace(strings.Repeat(`{"httpGet":{"path":"/ok?all=1","port":"web","scheme":"HTTPS"},"periodSeconds":5} `, 2)),
		},
		{
			name: "IPv6 host", args: []string{"probe", "--readiness", "-c", "web", "--get-url=http://[fd00::1]:80"}, file: "deploymentconfig", print: readiness,
			want: `{"httpGet":{"host":"fd00::1","path":"/","port":80,"scheme":"HTTP"}}`,
		},
		{
			name: "TCP of one container", args: []string{"probe", "--readiness", "-c", "l*", "--open-tcp=3306"}, file: "deploymentconfig", print: readiness,
			want: `{"tcpSocket":{"port":3306}}`,
		},
		{
			name: "command", args: []string{"probe", "--startup", "-c", "log", "--", "test", "-e", "/ok"}, file: "deploymentconfig",
			print: "{.spec.template.spec.containers[*].startupProbe}", want: `{"exec":{"command":["test","-e","/ok"]}}`,
		},
		{
			name: "numbers keep the action", args: []string{"probe", "--liveness", "-c", "web", "--failure-threshold=9"}, file: "deploymentconfig",
			print: "{.spec.template.spec.containers[0].livenessProbe}", want: `{"failureThreshold":9,"periodSeconds":20,"tcpSocket":{"port":8080}}`,
		},
		{
			name: "remove", args: []string{"probe", "--liveness", "--readiness", "--remove"}, file: "deploymentconfig",
			print: "{.spec.template.spec.containers[*].livenessProbe}",
		},
		{
			name: "URL with a query but without a path", args: []string{"probe", "--readiness", "-c", "web", "--get-url=http://:8080?all=1"}, file: "deploymentconfig",
			print: readiness, want: `{"httpGet":{"path":"/?all=1","port":8080,"scheme":"HTTP"}}`,
		},
		{name: "no type", args: []string{"probe", "--open-tcp=1"}, file: "deploymentconfig", failure: "--readiness, --liveness or both"},
		{name: "two actions", args: []string{"probe", "--readiness", "--open-tcp=1", "--remove"}, file: "deploymentconfig", failure: "you may only set one of"},
		{name: "URL without port", args: []string{"probe", "--readiness", "--get-url=http://host/"}, file: "deploymentconfig", failure: "port must be specified"},
		{name: "unknown scheme", args: []string{"probe", "--readiness", "--get-url=ftp://:21"}, file: "deploymentconfig", failure: "http:// or https://"},
		{name: "unknown container", args: []string{"probe", "--readiness", "-c", "db", "--open-tcp=1"}, file: "deploymentconfig", failure: `no container "db"`},
		{name: "invalid pattern", args: []string{"probe", "--readiness", "-c", "[", "--open-tcp=1"}, file: "deploymentconfig", failure: `parse --containers "["`},
		{name: "object without containers", args: []string{"probe", "--readiness", "--open-tcp=1"}, file: "service", failure: "does not have a pod template"},
		{name: "no object", args: []string{"probe", "--readiness", "--open-tcp=1"}, failure: "one or more resources must be specified"},
	})
}

func TestRouteBackends(t *testing.T) {
	const weights = "{.spec.to.name}={.spec.to.weight}{range .spec.alternateBackends[*]} {.name}={.weight}{end}"
	run(t, []change{
		{
			name: "list", args: []string{"route-backends"}, file: "route",
			want: "NAME        KIND     TO      WEIGHT\nroutes/web  Service  prod    60 (50%)\nroutes/web  Service  canary  20 (16%)\nroutes/web  Service  next    40 (33%)\n",
		},
		{name: "replace", args: []string{"route-backends", "a=1", "b=256"}, file: "route", print: weights, want: "a=1 b=256"},
		{name: "zero", args: []string{"route-backends", "--zero"}, file: "route", print: weights, want: "prod=0 canary=0 next=0"},
		{name: "equal", args: []string{"route-backends", "--equal"}, file: "route", print: weights, want: "prod=100 canary=100 next=100"},
		{name: "percentage with the primary", args: []string{"route-backends", "--adjust", "canary=40%"}, file: "route", print: weights, want: "prod=60 canary=40 next=50"},
		{name: "relative percentage", args: []string{"route-backends", "--adjust", "canary=+15%"}, file: "route", print: weights, want: "prod=60 canary=40 next=50"},
		{name: "percentage of the primary", args: []string{"route-backends", "--adjust", "prod=10%"}, file: "route", print: weights, want: "prod=10 canary=90 next=50"},
		{name: "weight", args: []string{"route-backends", "--adjust", "next=7"}, file: "route", print: weights, want: "prod=60 canary=20 next=7"},
		{name: "relative weight below zero", args: []string{"route-backends", "--adjust", "next=-50"}, file: "route", print: weights, want: "prod=60 canary=20 next=0"},
		{name: "unknown service", args: []string{"route-backends", "--adjust", "db=1"}, file: "route", failure: "its backends are prod, canary, next"},
		{name: "relative without --adjust", args: []string{"route-backends", "prod=+1"}, file: "route", failure: "a relative weight needs --adjust"},
		{name: "two services with --adjust", args: []string{"route-backends", "--adjust", "prod=1", "next=1"}, file: "route", failure: "--adjust needs one service"},
		{name: "twice", args: []string{"route-backends", "prod=1", "prod=2"}, file: "route", failure: `service "prod" appears twice`},
		{name: "percentages and weights", args: []string{"route-backends", "prod=1", "next=2%"}, file: "route", failure: "use either percentages or weights"},
		{name: "too large", args: []string{"route-backends", "prod=257"}, file: "route", failure: "must be a number up to 256"},
		{name: "no number", args: []string{"route-backends", "prod=most"}, file: "route", failure: "WEIGHT must be a number"},
		{name: "no name", args: []string{"route-backends", "=1"}, file: "route", failure: "expected NAME=WEIGHT"},
		{name: "zero and equal", args: []string{"route-backends", "--zero", "--equal"}, file: "route", failure: "may not be specified together"},
		{name: "no route", args: []string{"route-backends", "--zero"}, file: "service", failure: "only routes have backends"},
		{name: "list of an object that is not a route", args: []string{"route-backends"}, file: "service", failure: "is not a route"},
	})
}

func TestVolume(t *testing.T) {
	const (
		volumes = "{range .spec.template.spec.volumes[*]}{.name} {end}"
		mounts  = "{range .spec.template.spec.containers[*]}{.name}:{range .volumeMounts[*]}{.name}@{.mountPath} {end}{end}"
	)
	run(t, []change{
		{
			name: "list", args: []string{"volume"}, file: "deploymentconfig",
			want: "deploymentconfig.apps.openshift.io/web\n  empty directory as data\n    mounted at /data\n    mounted at /log\n  secret/keys as unused\n",
		},
		{name: "list of one volume", args: []string{"volume", "--name=unused"}, file: "deploymentconfig", want: "deploymentconfig.apps.openshift.io/web\n  secret/keys as unused\n"},
		{
			name: "add a secret, whose name implies the type", args: []string{"volume", "--add", "--name=k", "--secret-name=s", "--default-mode=0400", "-m", "/k/", "-c", "log"},
			file: "deploymentconfig", print: "{.spec.template.spec.volumes[2].secret}" + mounts, want: `{"defaultMode":256,"secretName":"s"}web:data@/data log:data@/log k@/k `,
		},
		{
			name: "add a config map", args: []string{"volume", "--add", "--name=c", "-t", "configmap", "--configmap-name=conf"}, file: "deploymentconfig",
			print: "{.spec.template.spec.volumes[2].configMap}", want: `{"name":"conf"}`,
		},
		{
			name: "add a directory of the host", args: []string{"volume", "--add", "--name=h", "--path=/srv"}, file: "deploymentconfig",
			print: "{.spec.template.spec.volumes[2].hostPath.path}", want: "/srv",
		},
		{
			name: "add a source as JSON", args: []string{"volume", "--add", "--name=n", `--source={"nfs": {"server": "files", "path": "/"}}`}, file: "deploymentconfig",
			print: "{.spec.template.spec.volumes[2].nfs}", want: `{"path":"/","server":"files"}`,
		},
		{
			name: "overwrite the source at a path", args: []string{"volume", "--add", "--overwrite", "-c", "web", "-m", "/data", "--claim-name=files"}, file: "deploymentconfig",
			print: "{.spec.template.spec.volumes[0].persistentVolumeClaim.claimName} " + volumes, want: "files data unused ",
		},
		{name: "remove mounts of one container", args: []string{"volume", "--remove", "--name=data", "-c", "log"}, file: "deploymentconfig", print: volumes + mounts, want: "data unused web:data@/data log:"},
		{name: "remove all", args: []string{"volume", "--remove", "--confirm"}, file: "deploymentconfig", print: volumes + mounts, want: "web:log:"},
		{name: "existing volume", args: []string{"volume", "--add", "--name=data", "-t", "emptyDir"}, file: "deploymentconfig", failure: "use --overwrite"},
		{name: "existing mount", args: []string{"volume", "--add", "--name=x", "-m", "/log", "-c", "log"}, file: "deploymentconfig", failure: "'/log' already exists"},
		{name: "remove without name", args: []string{"volume", "--remove"}, file: "deploymentconfig", failure: "--confirm"},
		{name: "remove unknown", args: []string{"volume", "--remove", "--name=x"}, file: "deploymentconfig", failure: `no volume "x"`},
		{name: "list unknown", args: []string{"volume", "--name=x"}, file: "deploymentconfig", failure: `volume "x" not found`},
		{name: "add and remove", args: []string{"volume", "--add", "--remove"}, file: "deploymentconfig", failure: "use only one of"},
		{name: "relative path", args: []string{"volume", "--add", "-m", "data"}, file: "deploymentconfig", failure: "must begin with a slash"},
		{name: "sub-path without mount", args: []string{"volume", "--add", "--sub-path=a"}, file: "deploymentconfig", failure: "need --mount-path"},
		{name: "unknown type", args: []string{"volume", "--add", "-t", "disk"}, file: "deploymentconfig", failure: `parse --type "disk"`},
		{name: "type without name", args: []string{"volume", "--add", "-t", "secret"}, file: "deploymentconfig", failure: "needs --secret-name"},
		{name: "mode in decimal", args: []string{"volume", "--add", "--secret-name=s", "--default-mode=0999"}, file: "deploymentconfig", failure: "octal number"},
		{name: "mode of an empty directory", args: []string{"volume", "--add", "-t", "emptyDir", "--default-mode=0644"}, file: "deploymentconfig", failure: "needs --type secret"},
		{name: "unknown field in JSON", args: []string{"volume", "--add", `--source={"disk": {}}`}, file: "deploymentconfig", failure: "it must be JSON such as"},
		{name: "empty JSON", args: []string{"volume", "--add", "--source={}"}, file: "deploymentconfig", failure: "--source is empty"},
		{name: "JSON with type", args: []string{"volume", "--add", "--source={}", "-t", "secret"}, file: "deploymentconfig", failure: "cannot be used with --type"},
		{name: "claim of a size", args: []string{"volume", "--add", "--name=d", "--claim-size=1Gi", "--claim-name=c"}, file: "deploymentconfig", print: "{.spec.template.spec.volumes[2].persistentVolumeClaim.claimName}", want: "c"},
		{name: "claim of an invalid size", args: []string{"volume", "--add", "--claim-size=large"}, file: "deploymentconfig", failure: "must be a size such as 5Gi"},
		{name: "claim of a wrong mode", args: []string{"volume", "--add", "--claim-size=1Gi", "--claim-mode=all"}, file: "deploymentconfig", failure: "parse --claim-mode"},
		{name: "claim class without size", args: []string{"volume", "--add", "--claim-class=fast"}, file: "deploymentconfig", failure: "needs --claim-size"},
		{name: "claim of another type", args: []string{"volume", "--add", "--claim-size=1Gi", "-t", "secret", "--secret-name=s"}, file: "deploymentconfig", failure: "for volumes of type persistentVolumeClaim"},
		{name: "object without volumes", args: []string{"volume", "--add"}, file: "service", failure: "does not have a pod template"},
	})
}

func TestTriggers(t *testing.T) {
	const types = "{range .spec.triggers[*]}{.type} {end}"
	const annotation = `{.metadata.annotations.image\.openshift\.io/triggers}`
	run(t, []change{
		{
			name: "list of a deployment config", args: []string{"triggers"}, file: "deploymentconfig",
			want: "NAME\t\t\tTYPE\tVALUE\t\t\tAUTO\ndeploymentconfigs/web\tconfig\t\t\t\ttrue\ndeploymentconfigs/web\timage\tweb:latest (web)\ttrue\n",
		},
		{
			name: "list of a build config", args: []string{"triggers"}, file: "build",
			want: "NAME\t\t\tTYPE\tVALUE\t\tAUTO\nbuildconfigs/app\tconfig\t\t\ttrue\nbuildconfigs/app\timage\truby:2.5\ttrue\nbuildconfigs/app\tgithub\tfirst\t\t\nbuildconfigs/app\twebhook\tsecret/hook\t\n",
		},
		{
			name: "manual keeps the last image", args: []string{"triggers", "--manual"}, file: "deploymentconfig", print: "{.spec.triggers}",
			want: `[{"imageChangeParams":{"containerNames":["web"],"from":{"kind":"ImageStreamTag","name":"web:latest"},"lastTriggeredImage":"registry/web@sha256:1"},"type":"ImageChange"}]`,
		},
		{name: "remove the config change", args: []string{"triggers", "--from-config", "--remove"}, file: "deploymentconfig", print: types, want: "ImageChange "},
		{name: "remove the image", args: []string{"triggers", "--from-image=shop/web:latest", "--remove"}, file: "deploymentconfig", print: types, want: "ConfigChange "},
		{name: "remove all", args: []string{"triggers", "--remove-all"}, file: "deploymentconfig", print: types},
		{
			name: "image of two containers", args: []string{"triggers", "--from-image=other/log:1", "-c", "log,prepare"}, file: "deploymentconfig",
			print: "{.spec.triggers[2].imageChangeParams}", want: `{"automatic":true,"containerNames":["log","prepare"],"from":{"kind":"ImageStreamTag","name":"log:1","namespace":"other"}}`,
		},
		{
			name: "the strategy's own image has no from", args: []string{"triggers", "--from-image=ruby:2.5"}, file: "build",
			print: types + "{.spec.triggers[3].imageChange}", want: "GitHub Generic ConfigChange ImageChange {}",
		},
		{name: "remove webhooks", args: []string{"triggers", "--from-github", "--from-webhook", "--remove"}, file: "build", print: types, want: "ConfigChange ImageChange "},
		{name: "webhook with variables", args: []string{"triggers", "--from-webhook-allow-env"}, file: "build", print: "{.spec.triggers[1].generic.allowEnv}", want: "true"},
		{
			name: "annotation keeps unknown fields", args: []string{"triggers", "--manual"}, file: "deployment", print: annotation,
			want: `[{"fieldPath":"spec.template.spec.containers[?(@.name==\"web\")].image","from":{"kind":"ImageStreamTag","name":"web:latest"},"note":"kept","paused":true}]`,
		},
		{
			name: "annotation of another project's tag", args: []string{"triggers", "--from-image=other/log:1", "-c", "log", "--remove-all"}, file: "deployment", failure: "without other flags",
		},
		{name: "annotation without triggers", args: []string{"triggers", "--remove-all"}, file: "deployment", print: "{.metadata.annotations}"},
		{name: "config change of a deployment", args: []string{"triggers", "--from-config", "--manual"}, file: "deployment", print: "{.spec.paused}", want: "true"},
		{name: "deployment without triggers", args: []string{"triggers", "--remove-all"}, file: "deployment", print: "{.spec.paused}", want: "true"},
		{name: "deployment with triggers", args: []string{"triggers", "--auto"}, file: "deployment", print: "{.spec.paused}"},
		{name: "webhook of a deployment", args: []string{"triggers", "--from-webhook"}, file: "deployment", failure: "does not support web hooks"},
		{name: "webhook of a deployment config", args: []string{"triggers", "--from-gitlab"}, file: "deploymentconfig", failure: "do not support GitLab web hooks"},
		{name: "unknown container", args: []string{"triggers", "--from-image=a:1", "-c", "db,web"}, file: "deploymentconfig", failure: "not all container names exist: db (accepts: prepare, web, log)"},
		{name: "no container", args: []string{"triggers", "--from-image=a:1"}, file: "deploymentconfig", failure: "--containers"},
		{name: "container of a build", args: []string{"triggers", "--from-image=a:1", "-c", "web"}, file: "build", failure: "remove --containers"},
		{name: "no tag", args: []string{"triggers", "--from-image=web"}, file: "deploymentconfig", failure: "must be STREAM:TAG"},
		{name: "auto and manual", args: []string{"triggers", "--auto", "--manual"}, file: "deploymentconfig", failure: "at most one"},
		{name: "nothing to remove", args: []string{"triggers", "--remove"}, file: "deploymentconfig", failure: "no triggers to remove"},
		{name: "object without triggers", args: []string{"triggers", "--auto"}, file: "service", failure: "only deployment configs"},
	})
}

func TestDeploymentHook(t *testing.T) {
	run(t, []change{
		{
			name: "pre", args: []string{"deployment-hook", "--pre", "--volumes=data", "-e", "MODE=a=b", "--failure-policy=Retry", "--", "migrate", "all"}, file: "deploymentconfig",
			print: "{.spec.strategy.rollingParams.pre}",
			want:  `{"execNewPod":{"command":["migrate","all"],"containerName":"web","env":[{"name":"MODE","value":"a=b"}],"volumes":["data"]},"failurePolicy":"Retry"}`,
		},
		{
			name: "mid of Recreate", args: []string{"deployment-hook", "--mid", "--", "true"}, file: "recreate",
			print: "{.spec.strategy.recreateParams.mid}", want: `{"execNewPod":{"command":["true"],"containerName":"db"},"failurePolicy":"Ignore"}`,
		},
		{name: "remove", args: []string{"deployment-hook", "--remove", "--pre", "--post"}, file: "recreate", print: "{.spec.strategy.recreateParams.pre}"},
		{name: "mid of Rolling", args: []string{"deployment-hook", "--mid", "--", "true"}, file: "deploymentconfig", failure: "only the strategy Recreate"},
		{name: "unknown container", args: []string{"deployment-hook", "--pre", "-c", "db", "--", "true"}, file: "deploymentconfig"},
		{name: "unknown volume", args: []string{"deployment-hook", "--pre", "--volumes=x", "--", "true"}, file: "deploymentconfig"},
		{name: "no command", args: []string{"deployment-hook", "--pre"}, file: "deploymentconfig", failure: "must specify a command"},
		{name: "no type", args: []string{"deployment-hook", "--", "true"}, file: "deploymentconfig", failure: "--pre, --mid, or --post"},
		{name: "two types", args: []string{"deployment-hook", "--pre", "--post", "--", "true"}, file: "deploymentconfig", failure: "only set one of"},
		{name: "remove with command", args: []string{"deployment-hook", "--pre", "--remove", "--", "true"}, file: "deploymentconfig", failure: "--remove may not be used"},
		{name: "policy", args: []string{"deployment-hook", "--pre", "--failure-policy=hope", "--", "true"}, file: "deploymentconfig", failure: "must be abort, retry or ignore"},
		{name: "variable", args: []string{"deployment-hook", "--pre", "-e", "=x", "--", "true"}, file: "deploymentconfig", failure: "must be NAME=VALUE"},
		{name: "object that is not a deployment config", args: []string{"deployment-hook", "--pre", "--", "true"}, file: "deployment", failure: "only deployment configs"},
		{name: "no object", args: []string{"deployment-hook", "--pre", "--", "true"}, failure: "one or more deployment configs"},
	})
}

func TestBuildHook(t *testing.T) {
	const hook = "{.spec.postCommit}"
	run(t, []change{
		{name: "script", args: []string{"build-hook", "--post-commit", "--script=rake test"}, file: "build", print: hook, want: `{"script":"rake test"}`},
		{name: "arguments", args: []string{"build-hook", "--post-commit", "--", "a", "-b"}, file: "build", print: hook, want: `{"args":["a","-b"]}`},
		{name: "command", args: []string{"build-hook", "--post-commit", "--command", "--", "rake"}, file: "build", print: hook, want: `{"command":["rake"]}`},
		{name: "remove", args: []string{"build-hook", "--post-commit", "--remove"}, file: "build", print: hook, want: "{}"},
		{name: "no type", args: []string{"build-hook", "--script=x"}, file: "build", failure: "--post-commit"},
		{name: "nothing", args: []string{"build-hook", "--post-commit"}, file: "build", failure: "either a script or command"},
		{name: "script and command", args: []string{"build-hook", "--post-commit", "--script=x", "--command"}, file: "build", failure: "only one of"},
		{name: "remove with script", args: []string{"build-hook", "--post-commit", "--script=x", "--remove"}, file: "build", failure: "without other flags"},
		{name: "object that is not a build config", args: []string{"build-hook", "--post-commit", "--script=x"}, file: "service", failure: "only build configs"},
	})
}

func TestBuildSecret(t *testing.T) {
	run(t, []change{
		{
			name: "all three", args: []string{"build-secret", "--push", "--pull", "--source", "secret/key"}, file: "build",
			print: "{.spec.output.pushSecret.name} {.spec.source.sourceSecret.name} {.spec.strategy.sourceStrategy.pullSecret.name}", want: "key key key",
		},
		{name: "remove", args: []string{"build-secret", "--pull", "--remove"}, file: "build", print: "{.spec.strategy.sourceStrategy.pullSecret}"},
		{name: "no name", args: []string{"build-secret", "--push"}, file: "build", failure: "a secret name must be specified"},
		{name: "no type", args: []string{"build-secret", "key"}, file: "build", failure: "specify the secret type"},
		{name: "strategy without image", args: []string{"build-secret", "--pull", "key"}, file: "pipeline", failure: "does not pull an image"},
	})
}

func TestImageLookup(t *testing.T) {
	const names = `{.metadata.annotations.alpha\.image\.policy\.openshift\.io/resolve-names}{.spec.template.metadata.annotations.alpha\.image\.policy\.openshift\.io/resolve-names}`
	run(t, []change{
		{name: "stream", args: []string{"image-lookup"}, file: "stream", print: "{.spec.lookupPolicy.local}", want: "true"},
		{name: "workload and its pods", args: []string{"image-lookup"}, file: "deployment", print: names, want: "**"},
		{name: "disabled", args: []string{"image-lookup", "--enabled=false"}, file: "deploymentconfig", print: names},
		{name: "list", args: []string{"image-lookup", "--list"}, file: "stream", want: "NAME\tLOCAL\nmysql\tfalse\n"},
		{name: "object without pods", args: []string{"image-lookup"}, file: "service", failure: "only image streams, pods"},
	})
}

func TestEnvOfBuilds(t *testing.T) {
	run(t, []change{
		{
			name: "source build", args: []string{"env", "MODE=fast", "LEVEL=1"}, file: "build", print: "{.spec.strategy.sourceStrategy.env}",
			want: `[{"name":"MODE","value":"fast"},{"name":"LEVEL","value":"1"}]`,
		},
		{name: "pipeline", args: []string{"env", "A=b"}, file: "pipeline", print: "{.spec.strategy.jenkinsPipelineStrategy.env}", want: `[{"name":"A","value":"b"}]`},
		{name: "added by flags", args: []string{"env", "A=b", "--env=B=c"}, file: "pipeline", print: "{.spec.strategy.jenkinsPipelineStrategy.env[*].name}", want: "A B"},
		{name: "removed by flags", args: []string{"env", "MODE=fast", "--env=LEVEL-"}, file: "build", print: "{.spec.strategy.sourceStrategy.env[*].name}", want: "MODE"},
		{name: "no variable", args: []string{"env"}, file: "build", failure: "at least one environment variable must be provided"},
		{name: "invalid name", args: []string{"env", "1 2=x"}, file: "build", failure: "environment variable 1 2=x is invalid"},
	})
}
