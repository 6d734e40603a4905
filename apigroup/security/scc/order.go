package scc

import (
	"cmp"
	"slices"

	securityv1 "github.com/openshift/api/security/v1"
)

// Sort sorts constraints in evaluation order: first by priority, highest first (the default is 0),
// then by restrictiveness, most restrictive first, and then by name.
func Sort(constraints []*Constraints) {
	slices.SortFunc(constraints, func(a, b *Constraints) int {
		return cmp.Or(
			cmp.Compare(priority(b), priority(a)),
			cmp.Compare(laxity(a), laxity(b)),
			cmp.Compare(a.Name, b.Name),
		)
	})
}

func priority(c *Constraints) int32 {
	if c.Priority == nil {
		return 0
	}
	return *c.Priority
}

// Weights of the features that a constraint can allow: privileged containers, host ports and host
// networking, host directories, unusual volumes, the user and SELinux label, and capabilities.
// Privileged containers, host ports, host networking and host directories each weigh more than all
// the features after them combined.
const (
	laxPrivileged     = 1_000_000
	laxHostPorts      = 400_000
	laxHostNetwork    = 200_000
	laxHostVolume     = 100_000
	laxUnusualVolume  = 50_000
	laxRunAsAny       = 40_000
	laxRunAsNonRoot   = 30_000
	laxRunAsRange     = 20_000
	laxRunAsOne       = 10_000
	laxCapabilities   = 5_000
	laxAllAllowed     = 4_000
	laxDefaultAddOne  = 300
	laxAllowedOne     = 10
	laxDropOne        = -50
	laxDropAll        = -3_000
	mostCapabilityLax = 9_999
)

// laxity returns how much a constraint allows. A low value means a restrictive constraint.
func laxity(c *Constraints) int {
	sum := volumeLaxity(c) + capabilityLaxity(c)
	if c.AllowPrivilegedContainer {
		sum += laxPrivileged
	}
	if c.AllowHostNetwork {
		sum += laxHostNetwork
	}
	if c.AllowHostPorts {
		sum += laxHostPorts
	}
	switch c.SELinuxContext.Type {
	case securityv1.SELinuxStrategyRunAsAny:
		sum += laxRunAsAny
	case securityv1.SELinuxStrategyMustRunAs:
		sum += laxRunAsOne
	}
	switch c.RunAsUser.Type {
	case securityv1.RunAsUserStrategyRunAsAny:
		sum += laxRunAsAny
	case securityv1.RunAsUserStrategyMustRunAsNonRoot:
		sum += laxRunAsNonRoot
	case securityv1.RunAsUserStrategyMustRunAsRange:
		sum += laxRunAsRange
	case securityv1.RunAsUserStrategyMustRunAs:
		sum += laxRunAsOne
	}
	return sum
}

func volumeLaxity(c *Constraints) int {
	unusual := false
	for _, kind := range c.Volumes {
		switch kind {
		case securityv1.FSTypeHostPath, securityv1.FSTypeAll:
			return laxHostVolume
		case securityv1.FSTypeSecret, securityv1.FSTypeConfigMap, securityv1.FSTypeEmptyDir, securityv1.FSTypeDownwardAPI,
			securityv1.FSProjected, securityv1.FSTypeNone:
		default:
			unusual = true
		}
	}
	if unusual {
		return laxUnusualVolume
	}
	return 0
}

func capabilityLaxity(c *Constraints) int {
	sum := laxCapabilities + laxDefaultAddOne*len(c.DefaultAddCapabilities)
	if slices.Contains(c.AllowedCapabilities, securityv1.AllowAllCapabilities) {
		sum += laxAllAllowed
	} else {
		sum += laxAllowedOne * len(c.AllowedCapabilities)
	}
	if slices.Contains(c.RequiredDropCapabilities, dropAll) {
		sum += laxDropAll
	} else {
		sum += laxDropOne * len(c.RequiredDropCapabilities)
	}
	return min(max(sum, 0), mostCapabilityLax)
}
