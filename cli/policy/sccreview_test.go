package policy

import (
	"strings"
	"testing"

	authorizationv1 "github.com/openshift/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/cli/objects/objectstest"
)

func TestPodTemplateOfEveryController(t *testing.T) {
	const spec = "{containers: [{name: a, image: b}]}"
	for name, tt := range map[string]struct{ object, problem string }{
		"pod":                      {"{kind: Pod, metadata: {name: x}, spec: " + spec + "}", ""},
		"deployment configuration": {"{kind: DeploymentConfig, spec: {template: {spec: " + spec + "}}}", ""},
		"cron job":                 {"{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: " + spec + "}}}}}", ""},
		"pod template":             {"{kind: PodTemplate, template: {spec: " + spec + "}}", ""},
		"no pod template":          {"{kind: Service, metadata: {name: x}}", `review Service "x": it has no pod template`},
	} {
		t.Run(name, func(t *testing.T) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(tt.object), &object.Object); err != nil {
				t.Fatal(err)
			}
			template, err := podTemplateOf(object)
			if tt.problem != "" {
				if err == nil || err.Error() != tt.problem {
					t.Errorf("got %v, want %s", err, tt.problem)
				}
				return
			}
			if err != nil || len(template.Spec.Containers) != 1 || template.Spec.Containers[0].Image != "b" {
				t.Errorf("found %+v, %v", template, err)
			}
		})
	}
}

func TestRulesArePrintedInStableOrder(t *testing.T) {
	var out strings.Builder
	rule := authorizationv1.PolicyRule{Verbs: []string{"get", "list"}, APIGroups: []string{"", "route.openshift.io"}, Resources: []string{"routes"}}
	writePolicyRules(&out, []authorizationv1.PolicyRule{rule, {Verbs: []string{"get"}, NonResourceURLsSlice: []string{"/healthz"}}, rule})
	objectstest.Golden(t, "testdata/can-i-list.txt", out.String())
}

func TestReconciledConstraintsKeepAdditions(t *testing.T) {
	five := int32(5)
	var constraints *scc.Constraints
	for _, c := range scc.BuiltIn("openshift-infra") {
		if c.Name == "restricted" {
			constraints = c
		}
	}
	present := constraints.DeepCopy()
	present.Labels = map[string]string{"team": "a"}
	present.Users, present.Priority, present.AllowHostNetwork = []string{"bob"}, &five, true
	present.Volumes = append(present.Volumes, "flexVolume")
	present.RequiredDropCapabilities = []corev1.Capability{"KILL"}

	remaining, reset := merge(constraints, present, true), merge(constraints, present, false)
	for name, got := range map[string]*scc.Constraints{"additive": remaining, "reset": reset} {
		if got.AllowHostNetwork || len(got.Volumes) != len(constraints.Volumes) || len(got.RequiredDropCapabilities) != len(constraints.RequiredDropCapabilities) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if strings.Join(remaining.Users, " ") != "bob" || remaining.Priority != &five || strings.Join(remaining.Groups, " ") != "system:authenticated" {
		t.Errorf("additive: users %v, groups %v, priority %v", remaining.Users, remaining.Groups, remaining.Priority)
	}
	if remaining.Labels["team"] != "a" {
		t.Errorf("additive: labels %v", remaining.Labels)
	}
	if len(reset.Users) != 0 || reset.Priority != nil || len(reset.Labels) != 0 {
		t.Errorf("reset: users %v, priority %v, labels %v", reset.Users, reset.Priority, reset.Labels)
	}
	if got := merge(constraints, nil, true); got != constraints {
		t.Errorf("missing constraints become %+v", got)
	}
}

func TestReviewsArePrintedWithGoFields(t *testing.T) {
	const template = "jsonpath={.status.AllowedBy.name}/{.Spec.Groups}"
	if got := goField.ReplaceAllStringFunc(template, strings.ToLower); got != "jsonpath={.status.allowedBy.name}/{.spec.groups}" {
		t.Errorf("template %s", got)
	}
}
