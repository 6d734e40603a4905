package scc

import (
	"fmt"
	"slices"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// check returns all objections to a completed pod.
func (r *resolved) check(pod *corev1.Pod, at *field.Path) field.ErrorList {
	spec := &pod.Spec
	errs := r.checkHost(spec, at)
	errs = append(errs, r.checkGroups(spec.SecurityContext, at.Child("securityContext"))...)
	errs = append(errs, r.checkSELinux(spec.SecurityContext.SELinuxOptions, at.Child("securityContext", "seLinuxOptions"))...)
	errs = append(errs, r.checkSeccomp(spec.SecurityContext.SeccompProfile, at.Child("securityContext", "seccompProfile"))...)
	errs = append(errs, r.checkAppArmor(spec.SecurityContext.AppArmorProfile, at.Child("securityContext", "appArmorProfile"))...)
	errs = append(errs, r.checkSysctls(spec.SecurityContext.Sysctls, at.Child("securityContext", "sysctls"))...)
	errs = append(errs, r.checkVolumes(spec, at.Child("volumes"))...)
	eachContainer(spec, func(c container) {
		errs = append(errs, r.checkContainer(*c.context, spec.SecurityContext, c.at(at).Child("securityContext"))...)
		errs = append(errs, r.checkPorts(c.ports, c.at(at).Child("ports"))...)
		errs = append(errs, r.checkHosts(c.hosts, c.at(at))...)
	})
	return errs
}

func (r *resolved) checkHost(spec *corev1.PodSpec, at *field.Path) (errs field.ErrorList) {
	for _, host := range []struct {
		inUse, allowed bool
		field, text    string
	}{
		{spec.HostNetwork, r.AllowHostNetwork, "hostNetwork", "the host's network is not allowed to be used"},
		{spec.HostPID, r.AllowHostPID, "hostPID", "the host's process IDs are not allowed to be used"},
		{spec.HostIPC, r.AllowHostIPC, "hostIPC", "the host's interprocess communication is not allowed to be used"},
	} {
		if host.inUse && !host.allowed {
			errs = append(errs, field.Invalid(at.Child(host.field), true, host.text))
		}
	}
	if r.UserNamespaceLevel == securityv1.NamespaceLevelRequirePod && (spec.HostUsers == nil || *spec.HostUsers) {
		errs = append(errs, field.Forbidden(at.Child("hostUsers"), "must be false: the pod must have its own user namespace"))
	}
	return errs
}

func (r *resolved) checkGroups(context *corev1.PodSecurityContext, at *field.Path) (errs field.ErrorList) {
	if r.FSGroup.Type == securityv1.FSGroupStrategyMustRunAs && !contains(r.fsGroup, *context.FSGroup) {
		errs = append(errs, field.Invalid(at.Child("fsGroup"), *context.FSGroup, "must be in the ranges: ["+format(r.fsGroup)+"]"))
	}
	if r.SupplementalGroups.Type == securityv1.SupplementalGroupsStrategyMustRunAs {
		for i, group := range context.SupplementalGroups {
			if !contains(r.supplementalGroups, group) {
				errs = append(errs, field.Invalid(at.Child("supplementalGroups").Index(i), group,
					"must be in the ranges: ["+format(r.supplementalGroups)+"]"))
			}
		}
		if len(context.SupplementalGroups) == 0 {
			errs = append(errs, field.Required(at.Child("supplementalGroups"), "must contain at least one group"))
		}
	}
	return errs
}

func (r *resolved) checkContainer(context *corev1.SecurityContext, pod *corev1.PodSecurityContext, at *field.Path) (errs field.ErrorList) {
	errs = append(errs, r.checkUser(context, pod, at)...)
	if context == nil {
		context = &corev1.SecurityContext{}
	}
	if context.Privileged != nil && *context.Privileged && !r.AllowPrivilegedContainer {
		errs = append(errs, field.Invalid(at.Child("privileged"), true, "privileged containers are not allowed"))
	}
	if context.ProcMount != nil && *context.ProcMount != corev1.DefaultProcMount && !r.AllowPrivilegedContainer {
		errs = append(errs, field.Invalid(at.Child("procMount"), *context.ProcMount, "must be Default: only constraints that allow privileged containers allow another value"))
	}
	if r.ReadOnlyRootFilesystem && (context.ReadOnlyRootFilesystem == nil || !*context.ReadOnlyRootFilesystem) {
		errs = append(errs, field.Invalid(at.Child("readOnlyRootFilesystem"), false, "the root file system must be read-only"))
	}
	if r.AllowPrivilegeEscalation != nil && !*r.AllowPrivilegeEscalation && (context.AllowPrivilegeEscalation == nil || *context.AllowPrivilegeEscalation) {
		errs = append(errs, field.Invalid(at.Child("allowPrivilegeEscalation"), true, "gaining privileges is not allowed"))
	}
	if context.SELinuxOptions != nil {
		errs = append(errs, r.checkSELinux(context.SELinuxOptions, at.Child("seLinuxOptions"))...)
	}
	if context.SeccompProfile != nil {
		errs = append(errs, r.checkSeccomp(context.SeccompProfile, at.Child("seccompProfile"))...)
	}
	errs = append(errs, r.checkAppArmor(context.AppArmorProfile, at.Child("appArmorProfile"))...)
	return append(errs, r.checkCapabilities(context.Capabilities, at.Child("capabilities"))...)
}

func (r *resolved) checkUser(context *corev1.SecurityContext, pod *corev1.PodSecurityContext, at *field.Path) (errs field.ErrorList) {
	user, nonRoot := effectiveUser(context, pod)
	at = at.Child("runAsUser")
	switch r.RunAsUser.Type {
	case securityv1.RunAsUserStrategyMustRunAs:
		if *user != *r.runAsUser.UID {
			return field.ErrorList{field.Invalid(at, *user, fmt.Sprintf("must be: %d", *r.runAsUser.UID))}
		}
	case securityv1.RunAsUserStrategyMustRunAsRange:
		if *user < *r.runAsUser.UIDRangeMin || *user > *r.runAsUser.UIDRangeMax {
			return field.ErrorList{field.Invalid(at, *user, fmt.Sprintf("must be in the ranges: [%d-%d]", *r.runAsUser.UIDRangeMin, *r.runAsUser.UIDRangeMax))}
		}
	case securityv1.RunAsUserStrategyMustRunAsNonRoot:
		switch {
		case user != nil && *user == 0:
			return field.ErrorList{field.Invalid(at, *user, "running as root is not allowed")}
		case user == nil && (nonRoot == nil || !*nonRoot):
			return field.ErrorList{field.Required(at, "runAsNonRoot must be true if no user is set")}
		}
	}
	return nil
}

// checkSELinux compares each field of the label with the constraint's label.
func (r *resolved) checkSELinux(label *corev1.SELinuxOptions, at *field.Path) (errs field.ErrorList) {
	if r.SELinuxContext.Type != securityv1.SELinuxStrategyMustRunAs {
		return nil
	}
	if label == nil {
		return field.ErrorList{field.Required(at, "a label must be set")}
	}
	for _, part := range []struct{ name, got, want string }{
		{"user", label.User, r.seLinux.User},
		{"role", label.Role, r.seLinux.Role},
		{"type", label.Type, r.seLinux.Type},
	} {
		switch {
		case part.got == part.want:
		case part.want == "":
			errs = append(errs, field.Invalid(at.Child(part.name), part.got, "must not be set"))
		default:
			errs = append(errs, field.Invalid(at.Child(part.name), part.got, "must be "+part.want))
		}
	}
	if !sameLevel(label.Level, r.seLinux.Level) {
		errs = append(errs, field.Invalid(at.Child("level"), label.Level, "must be "+r.seLinux.Level))
	}
	return errs
}

// sameLevel compares SELinux levels such as s0:c1,c0. The order of categories is irrelevant.
func sameLevel(a, b string) bool {
	sensitivityA, categoriesA, _ := strings.Cut(a, ":")
	sensitivityB, categoriesB, _ := strings.Cut(b, ":")
	setA, setB := strings.Split(categoriesA, ","), strings.Split(categoriesB, ",")
	slices.Sort(setA)
	slices.Sort(setB)
	return sensitivityA == sensitivityB && slices.Equal(setA, setB)
}

func (r *resolved) checkCapabilities(capabilities *corev1.Capabilities, at *field.Path) (errs field.ErrorList) {
	if slices.Contains(r.AllowedCapabilities, securityv1.AllowAllCapabilities) {
		return nil
	}
	if capabilities == nil {
		capabilities = &corev1.Capabilities{}
	}
	for _, capability := range capabilities.Add {
		if !slices.Contains(r.AllowedCapabilities, capability) && !slices.Contains(r.DefaultAddCapabilities, capability) {
			errs = append(errs, field.Invalid(at.Child("add"), string(capability), "capability may not be added"))
		}
	}
	for _, capability := range r.RequiredDropCapabilities {
		if !slices.Contains(capabilities.Drop, capability) && !slices.Contains(capabilities.Drop, dropAll) {
			errs = append(errs, field.Invalid(at.Child("drop"), capabilities.Drop, fmt.Sprintf("%s must be dropped", capability)))
		}
	}
	return errs
}

func (r *resolved) checkPorts(ports []corev1.ContainerPort, at *field.Path) (errs field.ErrorList) {
	if r.AllowHostPorts {
		return nil
	}
	for i, port := range ports {
		if port.HostPort > 0 {
			errs = append(errs, field.Invalid(at.Index(i).Child("hostPort"), port.HostPort, "host ports are not allowed to be used"))
		}
	}
	return errs
}

// checkHosts rejects hosts in probes and hooks: the kubelet connects to these hosts, which can be
// the node's own loopback addresses.
func (r *resolved) checkHosts(hosts []namedHost, at *field.Path) (errs field.ErrorList) {
	if r.AllowHostNetwork {
		return nil
	}
	for _, host := range hosts {
		errs = append(errs, field.Invalid(at.Child(host.field[0], append(host.field[1:], "host")...), host.name,
			"must not be set without the host's network: the node connects to the pod's own address"))
	}
	return errs
}
