package apps

import (
	"slices"
	"testing"

	appsv1 "github.com/openshift/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

// lenient implements Rules without defaulting or validation. Scenarios test the real rules on a
// cluster.
type lenient struct{}

func (lenient) DefaultPodTemplate(*corev1.PodTemplateSpec)                          {}
func (lenient) PodTemplate(*corev1.PodTemplateSpec, *field.Path) field.ErrorList    { return nil }
func (lenient) Env([]corev1.EnvVar, *field.Path) field.ErrorList                    { return nil }
func (lenient) Resources(*corev1.ResourceRequirements, *field.Path) field.ErrorList { return nil }

func valid() *appsv1.DeploymentConfig {
	dc := &appsv1.DeploymentConfig{Spec: appsv1.DeploymentConfigSpec{Template: &corev1.PodTemplateSpec{}}}
	dc.Name, dc.Spec.Template.Labels = "web", map[string]string{"app": "web"}
	return dc
}

func TestDefaults(t *testing.T) {
	dc := valid()
	setDefaults(dc)
	spec := dc.Spec
	if len(spec.Triggers) != 1 || spec.Triggers[0].Type != "ConfigChange" || spec.Selector["app"] != "web" || *spec.RevisionHistoryLimit != 10 {
		t.Errorf("defaulted %+v", spec)
	}
	rolling := spec.Strategy.RollingParams
	if spec.Strategy.Type != "Rolling" || *spec.Strategy.ActiveDeadlineSeconds != 21600 || rolling == nil || *rolling.TimeoutSeconds != 600 ||
		*rolling.IntervalSeconds != 1 || rolling.MaxSurge.StrVal != "25%" || rolling.MaxUnavailable.StrVal != "25%" {
		t.Errorf("strategy is %+v, %+v", spec.Strategy, rolling)
	}
	none := valid()
	none.Spec.Triggers = appsv1.DeploymentTriggerPolicies{}
	setDefaults(none)
	if len(none.Spec.Triggers) != 0 {
		t.Error("an empty list of triggers was replaced by the default")
	}
}

func TestRollingDefaultsAllowProgress(t *testing.T) {
	zero, item := intstr.FromInt32(0), intstr.FromInt32(1)
	for _, tt := range []struct {
		unavailable, surge         *intstr.IntOrString
		wantUnavailable, wantSurge string
	}{
		{nil, nil, "25%", "25%"},
		{nil, &zero, "25%", "0"},
		{&zero, nil, "0", "25%"},
		{nil, &item, "0", "1"},
		{&item, nil, "1", "0"},
		{&item, &item, "1", "1"},
	} {
		params := &appsv1.RollingDeploymentStrategyParams{MaxUnavailable: tt.unavailable, MaxSurge: tt.surge}
		setRollingDefaults(params)
		if params.MaxUnavailable.String() != tt.wantUnavailable || params.MaxSurge.String() != tt.wantSurge {
			t.Errorf("%v, %v became %s, %s", tt.unavailable, tt.surge, params.MaxUnavailable, params.MaxSurge)
		}
	}
}

func TestValidation(t *testing.T) {
	trigger := func(policy appsv1.DeploymentTriggerPolicy) func(*appsv1.DeploymentConfig) {
		return func(dc *appsv1.DeploymentConfig) { dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{policy} }
	}
	image := func(params appsv1.DeploymentTriggerImageChangeParams) func(*appsv1.DeploymentConfig) {
		return trigger(appsv1.DeploymentTriggerPolicy{Type: "ImageChange", ImageChangeParams: &params})
	}
	hook := func(hook appsv1.LifecycleHook) func(*appsv1.DeploymentConfig) {
		return func(dc *appsv1.DeploymentConfig) { dc.Spec.Strategy.RollingParams.Pre = &hook }
	}
	tag := corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:latest"}
	const pre = "spec.strategy.rollingParams.pre"
	for name, tt := range map[string]struct {
		change func(*appsv1.DeploymentConfig)
		want   []string
	}{
		"plain":                {func(*appsv1.DeploymentConfig) {}, nil},
		"negative replicas":    {func(dc *appsv1.DeploymentConfig) { dc.Spec.Replicas = -1 }, []string{"spec.replicas"}},
		"negative history":     {func(dc *appsv1.DeploymentConfig) { dc.Spec.RevisionHistoryLimit = ptr.To[int32](-1) }, []string{"spec.revisionHistoryLimit"}},
		"never ready":          {func(dc *appsv1.DeploymentConfig) { dc.Spec.MinReadySeconds = 600 }, []string{"spec.minReadySeconds"}},
		"no template":          {func(dc *appsv1.DeploymentConfig) { dc.Spec.Template = nil }, []string{"spec.template"}},
		"no selector":          {func(dc *appsv1.DeploymentConfig) { dc.Spec.Selector = nil }, []string{"spec.selector"}},
		"other selector":       {func(dc *appsv1.DeploymentConfig) { dc.Spec.Selector = map[string]string{"a": "b"} }, []string{"spec.template.metadata.labels"}},
		"restart policy Never": {func(dc *appsv1.DeploymentConfig) { dc.Spec.Template.Spec.RestartPolicy = "Never" }, []string{"spec.template.spec.restartPolicy"}},
		"unknown trigger":      {trigger(appsv1.DeploymentTriggerPolicy{Type: "Timer"}), []string{"spec.triggers[0].type"}},
		"trigger without type": {trigger(appsv1.DeploymentTriggerPolicy{}), []string{"spec.triggers[0].type"}},
		"no image":             {trigger(appsv1.DeploymentTriggerPolicy{Type: "ImageChange"}), []string{"spec.triggers[0].imageChangeParams"}},
		"image":                {image(appsv1.DeploymentTriggerImageChangeParams{From: tag, ContainerNames: []string{"a"}}), nil},
		"no containers":        {image(appsv1.DeploymentTriggerImageChangeParams{From: tag}), []string{"spec.triggers[0].imageChangeParams.containerNames"}},
		"no tag": {image(appsv1.DeploymentTriggerImageChangeParams{From: corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby"}, ContainerNames: []string{"a"}}),
			[]string{"spec.triggers[0].imageChangeParams.from.name"}},
		"no surge, none unavailable": {func(dc *appsv1.DeploymentConfig) {
			zero := intstr.FromInt32(0)
			dc.Spec.Strategy.RollingParams.MaxSurge, dc.Spec.Strategy.RollingParams.MaxUnavailable = &zero, &zero
		}, []string{"spec.strategy.rollingParams.maxUnavailable"}},
		"more than 100%": {func(dc *appsv1.DeploymentConfig) {
			dc.Spec.Strategy.RollingParams.MaxUnavailable = ptr.To(intstr.FromString("101%"))
		}, []string{"spec.strategy.rollingParams.maxUnavailable"}},
		"not a percentage": {func(dc *appsv1.DeploymentConfig) {
			dc.Spec.Strategy.RollingParams.MaxSurge = ptr.To(intstr.FromString("many"))
		}, []string{"spec.strategy.rollingParams.maxSurge"}},
		"deadline of zero":            {func(dc *appsv1.DeploymentConfig) { dc.Spec.Strategy.ActiveDeadlineSeconds = ptr.To[int64](0) }, []string{"spec.strategy.activeDeadlineSeconds"}},
		"custom":                      {func(dc *appsv1.DeploymentConfig) { dc.Spec.Strategy.Type = "Custom" }, []string{"spec.strategy.customParams"}},
		"unknown strategy":            {func(dc *appsv1.DeploymentConfig) { dc.Spec.Strategy.Type = "Blue" }, []string{"spec.strategy.type"}},
		"hook":                        {hook(appsv1.LifecycleHook{FailurePolicy: "Abort", ExecNewPod: &appsv1.ExecNewPodHook{Command: []string{"a"}, ContainerName: "a"}}), nil},
		"hook without failure policy": {hook(appsv1.LifecycleHook{ExecNewPod: &appsv1.ExecNewPodHook{Command: []string{"a"}, ContainerName: "a"}}), []string{pre + ".failurePolicy"}},
		"hook without action":         {hook(appsv1.LifecycleHook{FailurePolicy: "Abort"}), []string{pre}},
		"hook without command": {hook(appsv1.LifecycleHook{FailurePolicy: "Abort", ExecNewPod: &appsv1.ExecNewPodHook{}}),
			[]string{pre + ".execNewPod.command", pre + ".execNewPod.containerName"}},
		"hook with tags":             {hook(appsv1.LifecycleHook{FailurePolicy: "Abort", TagImages: []appsv1.TagImageHook{{ContainerName: "a", To: tag}}}), nil},
		"hook with command and tags": {hook(appsv1.LifecycleHook{FailurePolicy: "Abort", ExecNewPod: &appsv1.ExecNewPodHook{}, TagImages: []appsv1.TagImageHook{{}}}), []string{pre}},
	} {
		t.Run(name, func(t *testing.T) {
			dc := valid()
			setDefaults(dc)
			tt.change(dc)
			var got []string
			errs := validator{lenient{}}.config(t.Context(), dc, nil)
			for _, fieldErr := range errs {
				got = append(got, fieldErr.Field)
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems are %v, want %q", errs, tt.want)
			}
		})
	}
}

func TestLatestVersionIncreasesByOne(t *testing.T) {
	for now, ok := range map[int64]bool{4: false, 5: true, 6: true, 7: false} {
		dc, old := valid(), valid()
		dc.Status.LatestVersion, old.Status.LatestVersion = now, 5
		if errs := validateStatus(t.Context(), dc, old); (len(errs) == 0) != ok {
			t.Errorf("5 to %d: %v", now, errs)
		}
	}
}

func TestScaleShowsPodsAndSelector(t *testing.T) {
	dc := valid()
	setDefaults(dc)
	dc.Spec.Replicas, dc.Status.Replicas = 3, 2
	if got := scaleOf(dc); got.Spec.Replicas != 3 || got.Status.Replicas != 2 || got.Status.Selector != "app=web" {
		t.Errorf("scale is %+v", got)
	}
}

func TestTriggersColumn(t *testing.T) {
	dc := valid()
	dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{{Type: "ConfigChange"}, {Type: "ImageChange", ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{
		From: corev1.ObjectReference{Name: "ruby:latest"}}}}
	if got := triggers(dc); got != "config,image(ruby:latest)" {
		t.Errorf("shown as %v", got)
	}
}

func TestReferencesToStreamsMeanLatestTag(t *testing.T) {
	for name, tt := range map[string]struct{ reference, want corev1.ObjectReference }{
		"stream":          {corev1.ObjectReference{Kind: "ImageStream", Name: "ruby"}, corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:latest"}},
		"stream with tag": {corev1.ObjectReference{Kind: "ImageStream", Name: "ruby:2.5"}, corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:2.5"}},
		"repository":      {corev1.ObjectReference{Kind: "ImageRepository", Name: "ruby"}, corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:latest"}},
		"no kind":         {corev1.ObjectReference{Name: "ruby:2.5"}, corev1.ObjectReference{Kind: "ImageStreamTag", Name: "ruby:2.5"}},
		"no name":         {corev1.ObjectReference{Kind: "ImageStream"}, corev1.ObjectReference{Kind: "ImageStreamTag"}},
		"image":           {corev1.ObjectReference{Kind: "DockerImage", Name: "ruby"}, corev1.ObjectReference{Kind: "DockerImage", Name: "ruby"}},
	} {
		dc := valid()
		dc.Spec.Triggers = appsv1.DeploymentTriggerPolicies{{Type: "ImageChange", ImageChangeParams: &appsv1.DeploymentTriggerImageChangeParams{From: tt.reference}}}
		setDefaults(dc)
		if got := dc.Spec.Triggers[0].ImageChangeParams.From; got != tt.want {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
