package podcost

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
)

var reference = regexp.MustCompile(`\$\$|\$\(([^)]*)\)`)

// expand works like kube.ExpandReferences, which this package must not import.
func expand(text string, value func(string) string) string {
	return reference.ReplaceAllStringFunc(text, func(match string) string {
		if match == "$$" {
			return "$"
		}
		return value(match[2 : len(match)-1])
	})
}

// doubling returns environment variables, each of which refers to the previous variable twice.
func doubling(number int) []corev1.EnvVar {
	list := []corev1.EnvVar{{Name: "V0", Value: "x"}}
	for i := 1; i < number; i++ {
		list = append(list, corev1.EnvVar{Name: fmt.Sprint("V", i), Value: fmt.Sprintf("$(V%d)$(V%[1]d)", i-1)})
	}
	return list
}

func TestExpansionOfPodIsLimited(t *testing.T) {
	secret := corev1.EnvVar{Name: "SECRET", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "a"}}}
	manySecrets := strings.Repeat("$(SECRET)", 10_000)
	allOfSecret := []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{}}}
	for name, tt := range map[string]struct {
		container corev1.Container
		ok        bool
	}{
		"nothing":                         {corev1.Container{}, true},
		"usual references":                {corev1.Container{Env: append(doubling(10), secret), Args: []string{"--password=$(SECRET) $(V3)"}}, true},
		"many secrets":                    {corev1.Container{Env: manyOf(secret)}, true},
		"a terabyte":                      {corev1.Container{Env: doubling(40)}, false},
		"overflow of the sum":             {corev1.Container{Env: doubling(400)}, false},
		"a variable in many arguments":    {corev1.Container{Env: doubling(15), Args: repeat("$(V14)", 1000)}, false},
		"a variable in many commands":     {corev1.Container{Env: doubling(15), Command: repeat("$(V14)", 1000)}, false},
		"a secret in an argument":         {corev1.Container{Env: []corev1.EnvVar{secret}, Args: []string{manySecrets}}, false},
		"a secret in a path":              {corev1.Container{Env: []corev1.EnvVar{secret}, VolumeMounts: []corev1.VolumeMount{{SubPathExpr: manySecrets}}}, false},
		"a secret with unknown variables": {corev1.Container{EnvFrom: allOfSecret, Args: []string{manySecrets}}, false},
		"a script":                        {corev1.Container{Args: []string{manySecrets}}, true},
		"escaped references":              {corev1.Container{Env: []corev1.EnvVar{secret}, Args: []string{strings.Repeat("$$(SECRET)", 10_000)}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			ephemeral := []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon(tt.container)}}
			for kind, c := range map[string]struct {
				spec        corev1.PodSpec
				operation   admission.Operation
				subresource string
			}{
				"container":           {corev1.PodSpec{Containers: []corev1.Container{tt.container}}, admission.Create, ""},
				"init container":      {corev1.PodSpec{InitContainers: []corev1.Container{tt.container}}, admission.Create, ""},
				"ephemeral container": {corev1.PodSpec{EphemeralContainers: ephemeral}, admission.Update, "ephemeralcontainers"},
			} {
				err := (plugin{expand: expand}).Validate(t.Context(), admission.NewAttributesRecord(&corev1.Pod{Spec: c.spec}, nil, schema.GroupVersionKind{}, "", "",
					corev1.SchemeGroupVersion.WithResource("pods"), c.subresource, c.operation, nil, false, nil), nil)
				if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "8 MiB") {
					t.Errorf("%s: got %v, want success: %t", kind, err, tt.ok)
				}
			}
		})
	}
}

func TestSecretsInVolumesAreLimited(t *testing.T) {
	items := func(number int) []corev1.KeyToPath { return make([]corev1.KeyToPath, number) }
	secret := corev1.Volume{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{Items: items(2)}}}
	config := corev1.Volume{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}
	fields := corev1.Volume{VolumeSource: corev1.VolumeSource{DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: make([]corev1.DownwardAPIVolumeFile, 3)}}}
	projected := corev1.Volume{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
		{Secret: &corev1.SecretProjection{Items: items(4)}}, {ConfigMap: &corev1.ConfigMapProjection{}},
		{DownwardAPI: &corev1.DownwardAPIProjection{Items: make([]corev1.DownwardAPIVolumeFile, 5)}}, {ServiceAccountToken: &corev1.ServiceAccountTokenProjection{}},
	}}}}
	other := corev1.Volume{VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	for name, tt := range map[string]struct {
		volume   corev1.Volume
		per, max int
	}{"secret": {secret, 2, 64}, "ConfigMap": {config, 1, 128}, "fields": {fields, 3, 42}, "projected": {projected, 11, 11}, "other": {other, 0, 300}} {
		for _, number := range []int{1, tt.max, tt.max + 1} {
			spec := corev1.PodSpec{Volumes: slices.Repeat([]corev1.Volume{tt.volume}, number)}
			if got := copiesOf(&spec); got != number*tt.per {
				t.Errorf("%s: %d copies, want %d", name, got, number*tt.per)
			}
			err := (plugin{expand: expand}).Validate(t.Context(), admission.NewAttributesRecord(&corev1.Pod{Spec: spec}, nil, schema.GroupVersionKind{}, "", "",
				corev1.SchemeGroupVersion.WithResource("pods"), "", admission.Create, nil, false, nil), nil)
			if (err == nil) != (number <= tt.max || tt.per == 0) {
				t.Errorf("%d of %s: %v", number, name, err)
			}
		}
	}
}

func repeat(text string, number int) []string {
	return strings.Split(strings.Repeat(text+" ", number), " ")
}

// manyOf returns 600 environment variables whose values come from different secrets.
func manyOf(secret corev1.EnvVar) (list []corev1.EnvVar) {
	for i := range 600 {
		secret.Name = fmt.Sprint("SECRET", i)
		list = append(list, secret)
	}
	return list
}
