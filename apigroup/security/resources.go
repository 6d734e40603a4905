package security

import (
	"context"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/slipway-platform/slipway/apigroup/security/scc"
	"github.com/slipway-platform/slipway/apiserver"
)

// constraints returns the securitycontextconstraints resource. Its table contains the columns of
// `oc get scc` in OpenShift 3.
func constraints() apiserver.Served {
	type column = apiserver.Column[*scc.Constraints]
	return apiserver.Resource[*scc.Constraints]{
		Plural: "securitycontextconstraints", ShortNames: []string{"scc"},
		ValidName: apiserver.ValidPathSegment,
		Default:   scc.Default,
		Validate: func(_ context.Context, c, _ *scc.Constraints) field.ErrorList {
			return scc.Validate(c)
		},
		Unconditional: true,
		Columns: []column{
			{Name: "Priv", Description: "Privileged containers are allowed", Value: func(c *scc.Constraints) any { return c.AllowPrivilegedContainer }},
			{Name: "Caps", Description: "Capabilities that may be added", Value: func(c *scc.Constraints) any { return list(c.AllowedCapabilities) }},
			{Name: "SELinux", Description: "Strategy of the SELinux label", Value: func(c *scc.Constraints) any { return string(c.SELinuxContext.Type) }},
			{Name: "RunAsUser", Description: "Strategy of the user", Value: func(c *scc.Constraints) any { return string(c.RunAsUser.Type) }},
			{Name: "FSGroup", Description: "Strategy of the volumes' group", Value: func(c *scc.Constraints) any { return string(c.FSGroup.Type) }},
			{Name: "SupGroup", Description: "Strategy of further groups", Value: func(c *scc.Constraints) any { return string(c.SupplementalGroups.Type) }},
			{Name: "Priority", Description: "Order in which constraints are tried", Value: priority},
			{Name: "ReadOnlyRootFS", Description: "The root file system must be read-only", Value: func(c *scc.Constraints) any { return c.ReadOnlyRootFilesystem }},
			{Name: "Volumes", Description: "Types of volumes that may be used", Value: func(c *scc.Constraints) any { return list(c.Volumes) }},
		},
	}
}

func priority(c *scc.Constraints) any {
	if c.Priority == nil {
		return "<none>"
	}
	return *c.Priority
}

// list formats a list in the same way as OpenShift's client, as in `[a b]`.
func list[T corev1.Capability | securityv1.FSType](items []T) string {
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, string(item))
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// rangeAllocations returns the rangeallocations resource, which stores the allocated blocks of a
// range with one bit per block.
func rangeAllocations() apiserver.Served {
	return apiserver.Resource[*securityv1.RangeAllocation]{
		Plural: "rangeallocations",
		Validate: func(_ context.Context, r, _ *securityv1.RangeAllocation) (errs field.ErrorList) {
			if _, err := parseRange(r.Range); err != nil {
				errs = append(errs, field.Invalid(field.NewPath("range"), r.Range, err.Error()))
			}
			return errs
		},
		Columns: []apiserver.Column[*securityv1.RangeAllocation]{
			{Name: "Range", Description: "What is allocated", Value: func(r *securityv1.RangeAllocation) any { return r.Range }},
			apiserver.Age[*securityv1.RangeAllocation](),
		},
	}
}
