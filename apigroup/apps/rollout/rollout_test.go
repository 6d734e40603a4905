package rollout

import (
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
)

func image(automatic bool, last string) appsv1.DeploymentTriggerPolicy {
	return appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnImageChange, ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
		Automatic: automatic, LastTriggeredImage: last, ContainerNames: []string{"main"}, From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: "app:latest"},
	}}
}

var onConfig = appsv1.DeploymentTriggerPolicy{Type: appsv1.DeploymentTriggerOnConfigChange}

func config(image string, triggers ...appsv1.DeploymentTriggerPolicy) *appsv1.DeploymentConfig {
	dc := &appsv1.DeploymentConfig{Spec: appsv1.DeploymentConfigSpec{
		Triggers: triggers, Selector: map[string]string{"app": "web"},
		Template: &corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: image}, {Name: "other", Image: "other"}}}},
	}}
	dc.Namespace, dc.Name = "shop", "web"
	return dc
}

func TestCauses(t *testing.T) {
	const byConfig, byImage = appsv1.DeploymentTriggerOnConfigChange, appsv1.DeploymentTriggerOnImageChange
	for name, tt := range map[string]struct {
		dc, last *appsv1.DeploymentConfig
		want     appsv1.DeploymentTriggerType
	}{
		"first, no trigger":               {config("a"), nil, ""},
		"first, by config":                {config("a", onConfig), nil, byConfig},
		"first, image missing":            {config(" ", onConfig, image(true, "")), nil, ""},
		"first, image available":          {config("a", image(true, "a")), nil, byImage},
		"first, image not automatic":      {config("a", image(false, "a")), nil, ""},
		"first, not automatic, by config": {config("a", onConfig, image(false, "a")), nil, byConfig},
		"nothing new":                     {config("a", onConfig, image(true, "a")), config("a", onConfig, image(true, "a")), ""},
		"new image":                       {config("b", onConfig, image(true, "b")), config("a", onConfig, image(true, "a")), byImage},
		"new image, without config":       {config("b", image(true, "b")), config("a", image(true, "a")), byImage},
		"new template":                    {config("b", onConfig), config("a", onConfig), byConfig},
		"new template, no trigger":        {config("b"), config("a"), ""},
		"new trigger, same template":      {config("a", onConfig, image(true, "a")), config("a", onConfig), ""},
	} {
		var got appsv1.DeploymentTriggerType
		if causes := Causes(tt.dc, tt.last); len(causes) > 0 {
			got = causes[0].Type
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func stream(policy imagev1.TagReferencePolicyType, references ...string) *imagev1.ImageStream {
	s := &imagev1.ImageStream{}
	s.Spec.Tags = []imagev1.TagReference{{Name: "latest", ReferencePolicy: imagev1.TagReferencePolicy{Type: policy}}}
	s.Status.DockerImageRepository = "registry:5000/shop/app"
	list := imagev1.NamedTagEventList{Tag: "latest"}
	for _, reference := range references {
		list.Items = append(list.Items, imagev1.TagEvent{DockerImageReference: reference, Image: "sha256:1"})
	}
	s.Status.Tags = []imagev1.NamedTagEventList{list}
	return s
}

func TestTriggersUpdateImages(t *testing.T) {
	find := func(s *imagev1.ImageStream) func(string, string) *imagev1.ImageStream {
		return func(namespace, name string) *imagev1.ImageStream {
			if namespace != "shop" || name != "app" {
				return nil
			}
			return s
		}
	}
	deployed := func(dc *appsv1.DeploymentConfig) *appsv1.DeploymentConfig { dc.Status.LatestVersion = 1; return dc }
	for name, tt := range map[string]struct {
		dc     *appsv1.DeploymentConfig
		stream *imagev1.ImageStream
		force  Forced
		want   string
	}{
		"newest":                      {config("a", image(true, "a")), stream("", "b", "a"), nil, "b"},
		"from the cluster's registry": {config("a", image(true, "a")), stream(imagev1.LocalTagReferencePolicy, "b"), nil, "registry:5000/shop/app@sha256:1"},
		"no stream":                   {config("a", image(true, "a")), nil, nil, "a"},
		"no image":                    {config("a", image(true, "a")), stream(""), nil, "a"},
		"not automatic":               {deployed(config("a", image(false, "a"))), stream("", "b"), nil, "a"},
		"not automatic, first":        {config(" ", image(false, "")), stream("", "b"), nil, "b"},
		"not automatic, later":        {deployed(config("a", image(false, ""))), stream("", "b"), nil, "a"},
		"not automatic, but forced": {deployed(config("a", image(false, "a"))), stream("", "b"),
			func(*appsv1.DeploymentTriggerImageChangeParams) bool { return true }, "b"},
	} {
		before := tt.dc.Spec.Template.Spec.Containers[0].Image
		changed := UpdateImages(tt.dc, tt.force, find(tt.stream))
		containers := tt.dc.Spec.Template.Spec.Containers
		if containers[0].Image != tt.want || containers[1].Image != "other" || changed != (before != tt.want) {
			t.Errorf("%s: %q, changed %t", name, containers[0].Image, changed)
		}
		if last := tt.dc.Spec.Triggers[0].ImageChangeParams.LastTriggeredImage; changed && last != tt.want {
			t.Errorf("%s: the last triggered image is %q", name, last)
		}
	}
}

func TestDeploymentContainsItsConfiguration(t *testing.T) {
	dc := config("a", onConfig)
	dc.UID, dc.Spec.Replicas, dc.Status.LatestVersion = "1", 3, 7
	dc.Status.Details = &appsv1.DeploymentDetails{Causes: []appsv1.DeploymentCause{{Type: appsv1.DeploymentTriggerOnConfigChange}}}
	rc, err := New(dc)
	if err != nil {
		t.Fatal(err)
	}
	if rc.Name != "web-7" || *rc.Spec.Replicas != 0 || Version(rc) != 7 || ConfigOf(rc) != "web" || Phase(rc) != appsv1.DeploymentStatusNew || Ended(rc) || Cancelled(rc) {
		t.Errorf("created %+v", rc)
	}
	if desired, err := Desired(rc); err != nil || desired != 3 {
		t.Errorf("%d pods are desired, %v", desired, err)
	}
	if len(dc.Spec.Selector) != 1 || dc.Spec.Template.Labels != nil {
		t.Error("the configuration was changed")
	}
	last, err := Config(rc)
	if err != nil || last.Kind != "DeploymentConfig" || len(Causes(dc, last)) > 0 {
		t.Errorf("the recorded configuration is %+v, %v", last, err)
	}
	rc.Annotations[DesiredAnnotation], rc.Annotations[appsv1.DeploymentEncodedConfigAnnotation] = "many", "{"
	if _, err := Desired(rc); err == nil {
		t.Error("an invalid number of pods was accepted")
	}
	if _, err := Config(rc); err == nil {
		t.Error("an invalid configuration was accepted")
	}
}
