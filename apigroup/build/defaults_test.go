package build

import (
	"testing"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
)

func TestDefaultTriggersNeedStreamTag(t *testing.T) {
	other := &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "base:1"}
	for name, tt := range map[string]struct {
		strategy buildv1.BuildStrategy
		want     int
	}{
		"tag":      {buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{From: &corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:2"}}}, 3},
		"stream":   {buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{From: corev1.ObjectReference{Kind: "ImageStream", Name: "ruby"}}}, 3},
		"image":    {buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{From: &corev1.ObjectReference{Kind: "DockerImage", Name: "ruby"}}}, 2},
		"no image": {buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{}}, 2},
	} {
		config := valid()
		config.Spec.Strategy = tt.strategy
		config.Spec.Triggers = []buildv1.BuildTriggerPolicy{
			{Type: "ConfigChange"}, {Type: "ImageChange"}, {Type: "ImageChange", ImageChange: &buildv1.ImageChangeTrigger{From: other}},
		}
		setConfigDefaults(config)
		if got := config.Spec.Triggers; len(got) != tt.want || got[tt.want-1].ImageChange.From == nil {
			t.Errorf("%s: triggers are %+v", name, got)
		}
	}
}

func TestReferencesToStreamsMeanLatestTag(t *testing.T) {
	config := valid()
	config.Spec.Strategy.SourceStrategy.From = corev1.ObjectReference{Kind: "ImageStream", Name: "ruby"}
	config.Spec.Output.To = &corev1.ObjectReference{Kind: "ImageStream", Name: "app:v1"}
	setConfigDefaults(config)
	if got := config.Spec.Strategy.SourceStrategy.From; got.Kind != "ImageStreamTag" || got.Name != "ruby:latest" {
		t.Errorf("strategy is from %v", got)
	}
	if got := config.Spec.Output.To; got.Kind != "ImageStreamTag" || got.Name != "app:v1" {
		t.Errorf("output is %v", got)
	}
}

func TestOptionsMustMatchStrategy(t *testing.T) {
	docker := buildv1.BuildStrategy{DockerStrategy: &buildv1.DockerBuildStrategy{}}
	source := buildv1.BuildStrategy{SourceStrategy: &buildv1.SourceBuildStrategy{}}
	enabled := true
	secret := []corev1.EnvVar{{Name: "KEY", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "key"}}}}
	none := buildv1.BuildRequest{DockerStrategyOptions: &buildv1.DockerStrategyOptions{}, SourceStrategyOptions: &buildv1.SourceStrategyOptions{}}
	for name, tt := range map[string]struct {
		strategy buildv1.BuildStrategy
		request  buildv1.BuildRequest
		wantErr  bool
	}{
		"none":                         {source, buildv1.BuildRequest{}, false},
		"empty options, Docker build":  {docker, none, false},
		"empty options, Source build":  {source, none, false},
		"Docker options, Docker build": {docker, buildv1.BuildRequest{DockerStrategyOptions: &buildv1.DockerStrategyOptions{NoCache: &enabled}}, false},
		"Docker options, Source build": {source, buildv1.BuildRequest{DockerStrategyOptions: &buildv1.DockerStrategyOptions{NoCache: &enabled}}, true},
		"Source options, Source build": {source, buildv1.BuildRequest{SourceStrategyOptions: &buildv1.SourceStrategyOptions{Incremental: &enabled}}, false},
		"Source options, Docker build": {docker, buildv1.BuildRequest{SourceStrategyOptions: &buildv1.SourceStrategyOptions{Incremental: &enabled}}, true},
		"value":                        {source, buildv1.BuildRequest{Env: []corev1.EnvVar{{Name: "KEY", Value: "value"}}}, false},
		"variable from secret":         {source, buildv1.BuildRequest{Env: secret}, true},
		"argument from secret":         {docker, buildv1.BuildRequest{DockerStrategyOptions: &buildv1.DockerStrategyOptions{BuildArgs: secret}}, true},
	} {
		if err := checkOptions(&tt.strategy, &tt.request); (err != nil) != tt.wantErr {
			t.Errorf("%s: %v", name, err)
		}
	}
}
