package scc

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate validates a constraint, except its metadata.
func Validate(c *Constraints) field.ErrorList {
	var errs field.ErrorList
	if priority(c) < 0 {
		errs = append(errs, field.Invalid(field.NewPath("priority"), *c.Priority, "must not be negative"))
	}
	errs = append(errs, validateUser(c.RunAsUser, field.NewPath("runAsUser"))...)
	errs = append(errs, validateStrategies(c)...)
	errs = append(errs, validateVolumes(c)...)
	errs = append(errs, validateCapabilities(c)...)
	if c.AllowPrivilegeEscalation != nil && !*c.AllowPrivilegeEscalation && c.DefaultAllowPrivilegeEscalation != nil && *c.DefaultAllowPrivilegeEscalation {
		errs = append(errs, field.Invalid(field.NewPath("defaultAllowPrivilegeEscalation"), true, "must not be true where allowPrivilegeEscalation is false"))
	}
	for i, name := range c.SeccompProfiles {
		if name != profileAny && (ProfileNamed(name) == nil || strings.Contains(name, "..")) {
			errs = append(errs, field.Invalid(field.NewPath("seccompProfiles").Index(i), name, "must be runtime/default, docker/default, unconfined, localhost/<file> or *"))
		}
	}
	return append(errs, validateSysctls(c)...)
}

func validateUser(s securityv1.RunAsUserStrategyOptions, at *field.Path) (errs field.ErrorList) {
	for name, id := range map[string]*int64{"uid": s.UID, "uidRangeMin": s.UIDRangeMin, "uidRangeMax": s.UIDRangeMax} {
		if id != nil && (*id < 0 || *id > 1<<31-1) {
			errs = append(errs, field.Invalid(at.Child(name), *id, "must be between 0 and 2147483647"))
		}
	}
	switch s.Type {
	case securityv1.RunAsUserStrategyMustRunAs:
		if s.UID == nil {
			errs = append(errs, field.Required(at.Child("uid"), "MustRunAs needs a user"))
		}
	case securityv1.RunAsUserStrategyMustRunAsRange:
		switch {
		case s.UIDRangeMin == nil && s.UIDRangeMax == nil: // the namespace's range applies
		case s.UIDRangeMin == nil:
			errs = append(errs, field.Required(at.Child("uidRangeMin"), "needed with uidRangeMax; leave out both to use the namespace's range"))
		case s.UIDRangeMax == nil:
			errs = append(errs, field.Required(at.Child("uidRangeMax"), "needed with uidRangeMin; leave out both to use the namespace's range"))
		case *s.UIDRangeMin > *s.UIDRangeMax:
			errs = append(errs, field.Invalid(at.Child("uidRangeMin"), *s.UIDRangeMin, fmt.Sprintf("must not be above uidRangeMax, %d", *s.UIDRangeMax)))
		}
	case securityv1.RunAsUserStrategyMustRunAsNonRoot, securityv1.RunAsUserStrategyRunAsAny:
	default:
		errs = append(errs, strategy(at, string(s.Type), "MustRunAs", "MustRunAsRange", "MustRunAsNonRoot", "RunAsAny"))
	}
	return errs
}

func strategy(at *field.Path, value string, supported ...string) *field.Error {
	if value == "" {
		return field.Required(at.Child("type"), "must be one of "+strings.Join(supported, ", "))
	}
	return field.NotSupported(at.Child("type"), value, supported)
}

func validateStrategies(c *Constraints) (errs field.ErrorList) {
	at := field.NewPath("seLinuxContext")
	switch c.SELinuxContext.Type {
	case securityv1.SELinuxStrategyMustRunAs, securityv1.SELinuxStrategyRunAsAny:
	default:
		errs = append(errs, strategy(at, string(c.SELinuxContext.Type), "MustRunAs", "RunAsAny"))
	}
	at = field.NewPath("fsGroup")
	switch c.FSGroup.Type {
	case securityv1.FSGroupStrategyMustRunAs, securityv1.FSGroupStrategyRunAsAny:
	default:
		errs = append(errs, strategy(at, string(c.FSGroup.Type), "MustRunAs", "RunAsAny"))
	}
	errs = append(errs, validateRanges(c.FSGroup.Ranges, at.Child("ranges"))...)
	at = field.NewPath("supplementalGroups")
	switch c.SupplementalGroups.Type {
	case securityv1.SupplementalGroupsStrategyMustRunAs, securityv1.SupplementalGroupsStrategyRunAsAny:
	default:
		errs = append(errs, strategy(at, string(c.SupplementalGroups.Type), "MustRunAs", "RunAsAny"))
	}
	errs = append(errs, validateRanges(c.SupplementalGroups.Ranges, at.Child("ranges"))...)
	switch c.UserNamespaceLevel {
	case "", securityv1.NamespaceLevelAllowHost, securityv1.NamespaceLevelRequirePod:
	default:
		errs = append(errs, field.NotSupported(field.NewPath("userNamespaceLevel"), c.UserNamespaceLevel,
			[]securityv1.NamespaceLevelType{securityv1.NamespaceLevelAllowHost, securityv1.NamespaceLevelRequirePod}))
	}
	return errs
}

func validateRanges(ranges []securityv1.IDRange, at *field.Path) (errs field.ErrorList) {
	for i, r := range ranges {
		if r.Min < 0 || r.Max > 1<<31-1 || r.Min > r.Max {
			errs = append(errs, field.Invalid(at.Index(i), format([]securityv1.IDRange{r}), "must have 0 <= min <= max <= 2147483647"))
		}
	}
	return errs
}

func validateVolumes(c *Constraints) (errs field.ErrorList) {
	at := field.NewPath("volumes")
	supported := append(volumeTypes(), securityv1.FSTypeAll, securityv1.FSTypeNone)
	for i, kind := range c.Volumes {
		switch {
		case !slices.Contains(supported, kind):
			errs = append(errs, field.NotSupported(at.Index(i), kind, supported))
		case kind == securityv1.FSTypeNone && len(c.Volumes) > 1:
			errs = append(errs, field.Invalid(at.Index(i), string(kind), "must be the only entry"))
		}
	}
	for i, allowed := range c.AllowedFlexVolumes {
		if allowed.Driver == "" {
			errs = append(errs, field.Required(field.NewPath("allowedFlexVolumes").Index(i).Child("driver"), "name a driver such as example/lvm"))
		}
	}
	return errs
}

func validateCapabilities(c *Constraints) (errs field.ErrorList) {
	for i, capability := range c.RequiredDropCapabilities {
		at := field.NewPath("requiredDropCapabilities").Index(i)
		switch {
		case capability == securityv1.AllowAllCapabilities:
			errs = append(errs, field.Invalid(at, string(capability), "must name a capability, or ALL"))
		case slices.Contains(c.DefaultAddCapabilities, capability):
			errs = append(errs, field.Invalid(at, string(capability), "must not be in defaultAddCapabilities too"))
		case slices.Contains(c.AllowedCapabilities, capability):
			errs = append(errs, field.Invalid(at, string(capability), "must not be in allowedCapabilities too"))
		}
	}
	for _, list := range []struct {
		name         string
		capabilities []corev1.Capability
	}{
		{"defaultAddCapabilities", c.DefaultAddCapabilities}, {"requiredDropCapabilities", c.RequiredDropCapabilities},
		{"allowedCapabilities", c.AllowedCapabilities},
	} {
		for i, capability := range list.capabilities {
			if capability == "" {
				errs = append(errs, field.Required(field.NewPath(list.name).Index(i), "name a capability such as NET_ADMIN"))
			}
		}
	}
	return errs
}

// sysctlPattern matches a sysctl's name, optionally with a trailing *.
var sysctlPattern = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9]([-_a-z0-9]*[a-z0-9])?|[a-z0-9][-_a-z0-9]*\*|\*)$`)

func validateSysctls(c *Constraints) (errs field.ErrorList) {
	unsafe := field.NewPath("allowedUnsafeSysctls")
	for _, list := range []struct {
		at       *field.Path
		patterns []string
	}{{unsafe, c.AllowedUnsafeSysctls}, {field.NewPath("forbiddenSysctls"), c.ForbiddenSysctls}} {
		for i, pattern := range list.patterns {
			if len(pattern) > 253 || !sysctlPattern.MatchString(pattern) {
				errs = append(errs, field.Invalid(list.at.Index(i), pattern, "must be a kernel parameter such as kernel.shm_rmid_forced, or end in *"))
			}
		}
	}
	for i, pattern := range c.AllowedUnsafeSysctls {
		name := strings.TrimSuffix(pattern, "*")
		if matches(c.ForbiddenSysctls, name) || slices.ContainsFunc(c.ForbiddenSysctls, func(forbidden string) bool {
			return matches([]string{pattern}, strings.TrimSuffix(forbidden, "*"))
		}) {
			errs = append(errs, field.Invalid(unsafe.Index(i), pattern, "overlaps with forbiddenSysctls"))
		}
	}
	return errs
}
