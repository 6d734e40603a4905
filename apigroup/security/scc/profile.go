package scc

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Names of seccomp profiles in a constraint's seccompProfiles, and in the annotations of OpenShift
// 3 pods.
const (
	profileAny        = "*"
	profileRuntime    = "runtime/default"
	profileDocker     = "docker/default" // the older name of profileRuntime
	profileUnconfined = "unconfined"
	profileLocal      = "localhost/"
)

// ProfileNamed returns the seccomp profile with the given name in the form that a pod's field
// requires. It returns nil if the name does not identify exactly one profile.
func ProfileNamed(name string) *corev1.SeccompProfile {
	file, local := strings.CutPrefix(name, profileLocal)
	switch {
	case name == profileRuntime, name == profileDocker:
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	case name == profileUnconfined:
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
	case local && file != "":
		return &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: &file}
	}
	return nil
}

// profileName is the inverse of ProfileNamed.
func profileName(profile *corev1.SeccompProfile) string {
	switch profile.Type {
	case corev1.SeccompProfileTypeRuntimeDefault:
		return profileRuntime
	case corev1.SeccompProfileTypeLocalhost:
		if profile.LocalhostProfile == nil {
			return profileLocal
		}
		return profileLocal + *profile.LocalhostProfile
	}
	return profileUnconfined
}

// defaultSeccompProfile returns the first profile that is not a wildcard, or nil if there is no
// such profile.
func (r *resolved) defaultSeccompProfile() *corev1.SeccompProfile {
	for _, name := range r.SeccompProfiles {
		if name != profileAny {
			return ProfileNamed(name)
		}
	}
	return nil
}

// checkSeccomp rejects a profile that the constraint does not list. The container runtime's default
// profile applies to pods without a profile. This profile is also allowed by constraints without a
// list, such as OpenShift 3's constraints, and by constraints that allow the unconfined profile.
func (r *resolved) checkSeccomp(profile *corev1.SeccompProfile, at *field.Path) field.ErrorList {
	if profile == nil || slices.Contains(r.SeccompProfiles, profileAny) {
		return nil
	}
	name := profileName(profile)
	if name == profileRuntime && r.allowsRuntimeProfile() || slices.Contains(r.SeccompProfiles, name) {
		return nil
	}
	allowed := strings.Join(r.SeccompProfiles, ", ")
	if len(r.SeccompProfiles) == 0 {
		allowed = profileRuntime
	}
	return field.ErrorList{field.Forbidden(at, name+" is not allowed; allowed are "+allowed)}
}

// allowsRuntimeProfile returns false only if the list contains only local profiles, because local
// profiles can be stricter than the runtime's default profile.
func (r *resolved) allowsRuntimeProfile() bool {
	return len(r.SeccompProfiles) == 0 || slices.ContainsFunc(r.SeccompProfiles, func(name string) bool {
		return name == profileRuntime || name == profileDocker || name == profileUnconfined
	})
}

// checkAppArmor rejects every profile except the runtime's default profile, which also applies to
// pods without a profile. SCCs have no field for AppArmor. An SCC that allows privileged containers
// allows every profile, because no profile applies to privileged containers.
func (r *resolved) checkAppArmor(profile *corev1.AppArmorProfile, at *field.Path) field.ErrorList {
	if profile == nil || profile.Type == corev1.AppArmorProfileTypeRuntimeDefault || r.AllowPrivilegedContainer {
		return nil
	}
	return field.ErrorList{field.Forbidden(at, fmt.Sprintf("%s is not allowed; leave the profile out, or set it to %s",
		profile.Type, corev1.AppArmorProfileTypeRuntimeDefault))}
}

// safeSysctls returns the sysctls that the kubelet allows every pod to set, because they affect
// only the pod.
func safeSysctls() []string {
	return []string{
		"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
		"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
		"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
	}
}

func (r *resolved) checkSysctls(sysctls []corev1.Sysctl, at *field.Path) (errs field.ErrorList) {
	for i, sysctl := range sysctls {
		name := at.Index(i).Child("name")
		switch {
		case matches(r.ForbiddenSysctls, sysctl.Name):
			errs = append(errs, field.Forbidden(name, sysctl.Name+" is not allowed"))
		case !slices.Contains(safeSysctls(), sysctl.Name) && !matches(r.AllowedUnsafeSysctls, sysctl.Name):
			errs = append(errs, field.Forbidden(name, "the unsafe sysctl "+sysctl.Name+" is not allowed"))
		}
	}
	return errs
}

// matches reports whether name is equal to any of the patterns or, if a pattern ends in *, begins
// with the text before the *.
func matches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		prefix, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, prefix)
	})
}

// CarryAnnotations converts the seccomp annotations of OpenShift 3 pods to fields, because
// Kubernetes reads only the fields. It does not change a field that is already set, and ignores an
// annotation whose value is not a profile name.
func CarryAnnotations(pod *corev1.Pod) {
	if profile := ProfileNamed(pod.Annotations[corev1.SeccompPodAnnotationKey]); profile != nil {
		if pod.Spec.SecurityContext == nil {
			pod.Spec.SecurityContext = &corev1.PodSecurityContext{}
		}
		if pod.Spec.SecurityContext.SeccompProfile == nil {
			pod.Spec.SecurityContext.SeccompProfile = profile
		}
	}
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			profile := ProfileNamed(pod.Annotations[corev1.SeccompContainerAnnotationKeyPrefix+list[i].Name])
			if profile == nil || list[i].SecurityContext != nil && list[i].SecurityContext.SeccompProfile != nil {
				continue
			}
			if list[i].SecurityContext == nil {
				list[i].SecurityContext = &corev1.SecurityContext{}
			}
			list[i].SecurityContext.SeccompProfile = profile
		}
	}
}
