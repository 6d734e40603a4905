package scc

import (
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
)

// dropAll represents all capabilities in requiredDropCapabilities.
const dropAll corev1.Capability = "ALL"

// complete sets the pod's missing fields to the constraint's values. It does not change fields that
// the pod sets.
func (r *resolved) complete(pod *corev1.Pod) {
	spec := &pod.Spec
	context := &corev1.PodSecurityContext{}
	if spec.SecurityContext != nil {
		context = spec.SecurityContext.DeepCopy()
	}
	if context.SupplementalGroups == nil && r.SupplementalGroups.Type == securityv1.SupplementalGroupsStrategyMustRunAs {
		context.SupplementalGroups = []int64{r.supplementalGroups[0].Min}
	}
	if context.FSGroup == nil && r.FSGroup.Type == securityv1.FSGroupStrategyMustRunAs {
		context.FSGroup = &r.fsGroup[0].Min
	}
	if context.SELinuxOptions == nil && r.SELinuxContext.Type == securityv1.SELinuxStrategyMustRunAs {
		context.SELinuxOptions = r.seLinux.DeepCopy()
	}
	if profile := r.defaultSeccompProfile(); context.SeccompProfile == nil && profile != nil {
		context.SeccompProfile = profile
	}
	spec.SecurityContext = context
	eachContainer(spec, func(c container) { *c.context = r.completeContainer(*c.context, context) })
}

func (r *resolved) completeContainer(original *corev1.SecurityContext, pod *corev1.PodSecurityContext) *corev1.SecurityContext {
	context := &corev1.SecurityContext{}
	if original != nil {
		context = original.DeepCopy()
	}
	r.completeUser(context, pod)
	if r.ReadOnlyRootFilesystem && context.ReadOnlyRootFilesystem == nil {
		context.ReadOnlyRootFilesystem = new(true)
	}
	if context.AllowPrivilegeEscalation == nil {
		switch {
		case r.DefaultAllowPrivilegeEscalation != nil:
			context.AllowPrivilegeEscalation = new(*r.DefaultAllowPrivilegeEscalation)
		case r.AllowPrivilegeEscalation != nil && !*r.AllowPrivilegeEscalation:
			context.AllowPrivilegeEscalation = new(false)
		}
	}
	context.Capabilities = r.completeCapabilities(context.Capabilities)
	if original == nil && *context == (corev1.SecurityContext{}) {
		return nil
	}
	return context
}

func (r *resolved) completeUser(context *corev1.SecurityContext, pod *corev1.PodSecurityContext) {
	if user, _ := effectiveUser(context, pod); user != nil {
		return
	}
	switch r.RunAsUser.Type {
	case securityv1.RunAsUserStrategyMustRunAs:
		context.RunAsUser = new(*r.runAsUser.UID)
	case securityv1.RunAsUserStrategyMustRunAsRange:
		context.RunAsUser = new(*r.runAsUser.UIDRangeMin)
	case securityv1.RunAsUserStrategyMustRunAsNonRoot:
		// The image can specify any user, so RunAsNonRoot is set. The kubelet then rejects root.
		if _, nonRoot := effectiveUser(context, pod); nonRoot == nil {
			context.RunAsNonRoot = new(true)
		}
	}
}

// completeCapabilities adds the default and the required capabilities to a container's
// capabilities, and sorts them.
func (r *resolved) completeCapabilities(original *corev1.Capabilities) *corev1.Capabilities {
	if len(r.DefaultAddCapabilities) == 0 && len(r.RequiredDropCapabilities) == 0 {
		return original
	}
	result := &corev1.Capabilities{}
	if original != nil {
		result = original.DeepCopy()
	}
	for _, capability := range r.DefaultAddCapabilities {
		if !slices.Contains(result.Drop, capability) { // a container can drop default capabilities
			result.Add = union(result.Add, capability)
		}
	}
	for _, capability := range r.RequiredDropCapabilities {
		result.Drop = union(result.Drop, capability)
	}
	return result
}

// union adds a capability to a set and sorts the set. If the set already contains the capability,
// union returns the set unchanged.
func union(set []corev1.Capability, capability corev1.Capability) []corev1.Capability {
	if slices.Contains(set, capability) {
		return set
	}
	set = append(slices.Clone(set), capability)
	slices.Sort(set)
	return set
}

// effectiveUser returns a container's user, and whether the container must not run as root. The
// container's values take precedence over the pod's values.
func effectiveUser(context *corev1.SecurityContext, pod *corev1.PodSecurityContext) (user *int64, nonRoot *bool) {
	if pod != nil {
		user, nonRoot = pod.RunAsUser, pod.RunAsNonRoot
	}
	if context != nil && context.RunAsUser != nil {
		user = context.RunAsUser
	}
	if context != nil && context.RunAsNonRoot != nil {
		nonRoot = context.RunAsNonRoot
	}
	return user, nonRoot
}
