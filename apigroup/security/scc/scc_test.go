package scc

import (
	"slices"
	"strings"
	"testing"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestSortByPriorityRestrictionAndName(t *testing.T) {
	constraints := BuiltIn("openshift-infra")
	for _, name := range []string{"b", "a"} {
		same := restricted()
		same.Name = name
		constraints = append(constraints, same)
	}
	zero := restricted()
	zero.Name, zero.Priority = "low", new(int32(0))
	constraints = append(constraints, zero)
	Sort(constraints)
	var names []string
	for _, c := range constraints {
		names = append(names, c.Name)
	}
	want := []string{"anyuid", "a", "b", "low", "restricted", "nonroot", "hostmount-anyuid", "hostnetwork", "hostaccess", "node-exporter", "privileged"}
	if !slices.Equal(names, want) {
		t.Errorf("order is %v, want %v", names, want)
	}
}

func TestBuiltInConstraintsAreValid(t *testing.T) {
	for _, c := range BuiltIn("openshift-infra") {
		if errs := Validate(c); len(errs) > 0 {
			t.Errorf("%s: %v", c.Name, errs)
		}
		constraints := c.DeepCopy()
		Default(constraints)
		if !slices.Equal(constraints.Volumes, c.Volumes) {
			t.Errorf("%s: defaults change the volumes to %v", c.Name, constraints.Volumes)
		}
		if c.Annotations["kubernetes.io/description"] == "" {
			t.Errorf("%s has no description", c.Name)
		}
		if priority := c.Priority; (c.Name == "anyuid") != (priority != nil && *priority == 10) {
			t.Errorf("%s has priority %v, want 10 for anyuid alone", c.Name, priority)
		}
	}
}

func TestBlocksOfIDs(t *testing.T) {
	for text, want := range map[string]securityv1.IDRange{
		"1000010000/10000": {Min: 1000010000, Max: 1000019999}, "1/3": {Min: 1, Max: 3}, "5-5": {Min: 5, Max: 5}, "0-9": {Max: 9},
	} {
		if got, err := ParseBlock(text); err != nil || got != want {
			t.Errorf("ParseBlock(%q) = %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"", "7", "1/", "1/0", "/3", "9-1", "a-b", "-1/5", "1-2-3", "99999999999/1"} {
		if got, err := ParseBlock(text); err == nil {
			t.Errorf("ParseBlock(%q) = %v, want an error", text, got)
		}
	}
}

func TestDecideNamesMissingAnnotation(t *testing.T) {
	bare := &corev1.Namespace{}
	bare.Name = "bare"
	decision := Decide([]*Constraints{restricted(), hostNetwork()}, bare, &corev1.Pod{}, field.NewPath("spec"))
	if decision.AllowedBy != nil || !strings.Contains(decision.Reason(), securityv1.UIDRangeAnnotation) {
		t.Errorf("reason is %q, want one that names %s", decision.Reason(), securityv1.UIDRangeAnnotation)
	}
}

func TestGroupsFallBackToUsersOfNamespace(t *testing.T) {
	ns := namespace()
	delete(ns.Annotations, securityv1.SupplementalGroupsAnnotation)
	decision := Decide([]*Constraints{hostNetwork()}, ns, &corev1.Pod{}, field.NewPath("spec"))
	if decision.AllowedBy == nil || *decision.Pod.Spec.SecurityContext.FSGroup != 1000010000 {
		t.Errorf("decision is %+v, want the group 1000010000", decision)
	}
}

func TestRecheckDoesNotCompletePods(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
	if d := Recheck([]*Constraints{restricted()}, namespace(), pod, field.NewPath("spec")); d.AllowedBy != nil {
		t.Errorf("%s accepts a pod that it would have to change", d.AllowedBy.Name)
	}
	completed := Decide([]*Constraints{restricted()}, namespace(), pod, field.NewPath("spec")).Pod
	if d := Recheck([]*Constraints{restricted()}, namespace(), completed, field.NewPath("spec")); d.AllowedBy == nil {
		t.Errorf("the pod that the constraint completed is rejected: %s", d.Reason())
	}
}

func TestDefaultVolumesOfOlderConstraints(t *testing.T) {
	c := &Constraints{}
	Default(c)
	if slices.Contains(c.Volumes, securityv1.FSTypeHostPath) || !slices.Contains(c.Volumes, securityv1.FSTypeSecret) {
		t.Errorf("without a list the volumes are %v, want all but hostPath", c.Volumes)
	}
	open := &Constraints{AllowHostDirVolumePlugin: true}
	Default(open)
	if !slices.Equal(open.Volumes, []securityv1.FSType{securityv1.FSTypeAll}) {
		t.Errorf("with host directories the volumes are %v, want [*]", open.Volumes)
	}
	constraints := &Constraints{Volumes: []securityv1.FSType{securityv1.FSTypeHostPath, securityv1.FSTypeSecret}}
	Default(constraints)
	if !slices.Equal(constraints.Volumes, []securityv1.FSType{securityv1.FSTypeSecret}) {
		t.Errorf("%v contains hostPath although host directories are not allowed", constraints.Volumes)
	}
	none := &Constraints{AllowHostDirVolumePlugin: true, Volumes: []securityv1.FSType{securityv1.FSTypeNone}}
	Default(none)
	if !slices.Equal(none.Volumes, []securityv1.FSType{securityv1.FSTypeHostPath}) {
		t.Errorf("with host directories, none becomes %v, want [hostPath]", none.Volumes)
	}
}

func TestValidateRejectsInconsistentConstraints(t *testing.T) {
	for want, change := range map[string]func(*Constraints){
		"priority":                     func(c *Constraints) { c.Priority = new(int32(-1)) },
		"runAsUser.type":               func(c *Constraints) { c.RunAsUser.Type = "Anything" },
		"runAsUser.uid":                func(c *Constraints) { c.RunAsUser.Type = securityv1.RunAsUserStrategyMustRunAs },
		"runAsUser.uidRangeMax":        func(c *Constraints) { c.RunAsUser.UIDRangeMin = new(int64(4)) },
		"runAsUser.uidRangeMin":        func(c *Constraints) { c.RunAsUser.UIDRangeMin, c.RunAsUser.UIDRangeMax = new(int64(4)), new(int64(3)) },
		"seLinuxContext.type":          func(c *Constraints) { c.SELinuxContext.Type = "" },
		"fsGroup.type":                 func(c *Constraints) { c.FSGroup.Type = "x" },
		"fsGroup.ranges[0]":            func(c *Constraints) { c.FSGroup.Ranges = []securityv1.IDRange{{Min: 2, Max: 1}} },
		"supplementalGroups.type":      func(c *Constraints) { c.SupplementalGroups.Type = "x" },
		"supplementalGroups.ranges[0]": func(c *Constraints) { c.SupplementalGroups.Ranges = []securityv1.IDRange{{Min: -2, Max: 1}} },
		"userNamespaceLevel":           func(c *Constraints) { c.UserNamespaceLevel = "x" },
		"volumes[0]":                   func(c *Constraints) { c.Volumes = []securityv1.FSType{"hostpath"} },
		"volumes[1]":                   func(c *Constraints) { c.Volumes = []securityv1.FSType{"secret", "none"} },
		"allowedFlexVolumes[0].driver": func(c *Constraints) { c.AllowedFlexVolumes = []securityv1.AllowedFlexVolume{{}} },
		"requiredDropCapabilities[0]":  func(c *Constraints) { c.AllowedCapabilities = []corev1.Capability{"KILL"} },
		"requiredDropCapabilities[1]":  func(c *Constraints) { c.DefaultAddCapabilities = []corev1.Capability{"MKNOD"} },
		"allowedCapabilities[0]":       func(c *Constraints) { c.AllowedCapabilities = []corev1.Capability{""} },
		"defaultAllowPrivilegeEscalation": func(c *Constraints) {
			c.AllowPrivilegeEscalation, c.DefaultAllowPrivilegeEscalation = new(false), new(true)
		},
		"seccompProfiles[0]": func(c *Constraints) { c.SeccompProfiles = []string{"localhost/../etc"} },
		"allowedUnsafeSysctls[0]": func(c *Constraints) {
			c.AllowedUnsafeSysctls, c.ForbiddenSysctls = []string{"kernel.*"}, []string{"kernel.msgmax"}
		},
		"forbiddenSysctls[0]": func(c *Constraints) { c.ForbiddenSysctls = []string{"kernel.*.x"} },
	} {
		c := restricted()
		change(c)
		errs := Validate(c)
		if len(errs) == 0 || errs[0].Field != want {
			t.Errorf("%s: errors are %v", want, errs)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	constraints := BuiltIn("openshift-infra")
	Sort(constraints)
	pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", SecurityContext: &corev1.SecurityContext{Privileged: new(true)}}}}}
	for b.Loop() {
		if Decide(constraints, namespace(), pod, field.NewPath("spec")).AllowedBy == nil {
			b.Fatal("rejected")
		}
	}
}

func TestCheckSeccompAllowsListedProfiles(t *testing.T) {
	const runtime, docker, unconfined, local = "runtime/default", "docker/default", "unconfined", "localhost/own.json"
	for _, test := range []struct {
		profiles          []string
		allowed, rejected []string
	}{
		{nil, []string{runtime, docker}, []string{unconfined, local}},
		{[]string{"*"}, []string{runtime, docker, unconfined, local}, nil},
		{[]string{runtime}, []string{runtime, docker}, []string{unconfined, local}},
		{[]string{docker}, []string{runtime, docker}, []string{unconfined, local}},
		{[]string{unconfined}, []string{runtime, docker, unconfined}, []string{local}},
		// A local profile might be stricter than the runtime's default profile.
		{[]string{local}, []string{local}, []string{runtime, docker, unconfined, "localhost/other.json"}},
	} {
		c := restricted()
		c.SeccompProfiles = test.profiles
		decide := func(annotation, name string) bool {
			pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}}
			pod.Annotations = map[string]string{annotation: name}
			CarryAnnotations(pod)
			return Decide([]*Constraints{c}, namespace(), pod, field.NewPath("spec")).AllowedBy != nil
		}
		for _, annotation := range []string{corev1.SeccompPodAnnotationKey, corev1.SeccompContainerAnnotationKeyPrefix + "main"} {
			for _, name := range test.allowed {
				if !decide(annotation, name) {
					t.Errorf("seccompProfiles %v reject %s: %s", test.profiles, annotation, name)
				}
			}
			for _, name := range test.rejected {
				if decide(annotation, name) {
					t.Errorf("seccompProfiles %v allow %s: %s", test.profiles, annotation, name)
				}
			}
		}
	}
}
