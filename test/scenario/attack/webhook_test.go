package attack

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	buildv1 "github.com/openshift/api/build/v1"

	"github.com/slipway-platform/slipway/test/kit"
)

func TestWebhookWithoutAllowEnvTakesNoArguments(t *testing.T) {
	s := tenants(t)
	configs := kit.GroupPath("build.openshift.io", s.shop, "buildconfigs")
	s.alice.May("POST", configs, `{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {
		source: {dockerfile: "FROM scratch"}, strategy: {dockerStrategy: {buildArgs: [{name: VERSION, value: "1"}]}},
		triggers: [{type: Generic, generic: {secret: closed}}, {type: Generic, generic: {secret: open, allowEnv: true}}]}}`)
	const call = `{env: [{name: WORD, value: sent}], dockerStrategyOptions: {noCache: true, buildArgs: [{name: VERSION, value: "2"}, {name: MORE, value: sent}]}}`
	for secret, taken := range map[string]bool{"closed": false, "open": true} {
		response := s.Anonymous().May("POST", configs+"/app/webhooks/"+secret+"/generic", call)
		var build buildv1.Build
		if err := json.Unmarshal([]byte(response), &build); err != nil || build.Spec.Strategy.DockerStrategy != nil {
			t.Fatalf("the response contains the strategy, %v: %s", err, response)
		}
		response = s.alice.May("GET", kit.GroupPath("build.openshift.io", s.shop, "builds/"+build.Name), "")
		if err := json.Unmarshal([]byte(response), &build); err != nil || build.Spec.Strategy.DockerStrategy == nil {
			t.Fatalf("%v: %s", err, response)
		}
		docker := build.Spec.Strategy.DockerStrategy
		if args := len(docker.BuildArgs); taken != (args == 2) || taken != (len(docker.Env) == 1) || taken != docker.NoCache || docker.BuildArgs[0].Value != map[bool]string{true: "2", false: "1"}[taken] {
			t.Errorf("a call of the webhook %q creates a build with arguments %v, environment %v and noCache %t", secret, docker.BuildArgs, docker.Env, docker.NoCache)
		}
	}
}

func TestSignedCallDoesNotDiscloseBuildConfigurations(t *testing.T) {
	s := tenants(t)
	configs := kit.GroupPath("build.openshift.io", s.shop, "buildconfigs")
	s.alice.May("POST", configs, `{apiVersion: build.openshift.io/v1, kind: BuildConfig, metadata: {name: app}, spec: {
		source: {dockerfile: "FROM scratch"}, strategy: {dockerStrategy: {}}, triggers: [{type: GitHub, github: {secret: hidden}}]}}`)
	for name, body := range map[string]string{"small": "{}", "too large": strings.Repeat(" ", 5<<20)} {
		answer := func(config string) (code int) {
			s.Anonymous().Rest.Post().AbsPath(configs+"/"+config+"/webhooks/github").SetHeader("X-Hub-Signature-256", "sha256=00").
				SetHeader("X-GitHub-Event", "push").SetHeader("Content-Type", "application/json").Body([]byte(body)).Do(context.Background()).StatusCode(&code)
			return code
		}
		if existing, missing := answer("app"), answer("gone"); existing != missing || existing < 400 {
			t.Errorf("%s call: status %d for an existing configuration, %d for a missing one", name, existing, missing)
		}
	}
}
