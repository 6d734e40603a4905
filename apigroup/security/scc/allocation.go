package scc

import (
	"fmt"
	"strconv"
	"strings"

	securityv1 "github.com/openshift/api/security/v1"
	corev1 "k8s.io/api/core/v1"
)

// resolved is a constraint in which a namespace's ranges have replaced missing values.
type resolved struct {
	*Constraints
	runAsUser          securityv1.RunAsUserStrategyOptions
	seLinux            *corev1.SELinuxOptions
	fsGroup            []securityv1.IDRange
	supplementalGroups []securityv1.IDRange
}

// resolve sets a constraint's missing user range, SELinux level and groups to the namespace's
// values. If the namespace lacks a required value, the error contains the name of the annotation.
func resolve(c *Constraints, namespace *corev1.Namespace) (*resolved, error) {
	r := &resolved{
		Constraints: c, runAsUser: c.RunAsUser, seLinux: c.SELinuxContext.SELinuxOptions,
		fsGroup: c.FSGroup.Ranges, supplementalGroups: c.SupplementalGroups.Ranges,
	}
	if c.RunAsUser.Type == securityv1.RunAsUserStrategyMustRunAsRange && c.RunAsUser.UIDRangeMin == nil && c.RunAsUser.UIDRangeMax == nil {
		block, err := users(namespace)
		if err != nil {
			return nil, err
		}
		r.runAsUser.UIDRangeMin, r.runAsUser.UIDRangeMax = &block.Min, &block.Max
	}
	if c.SELinuxContext.Type == securityv1.SELinuxStrategyMustRunAs && (r.seLinux == nil || r.seLinux.Level == "") {
		level, ok := namespace.Annotations[securityv1.MCSAnnotation]
		if !ok || level == "" {
			return nil, missing(namespace, securityv1.MCSAnnotation)
		}
		options := corev1.SELinuxOptions{}
		if r.seLinux != nil {
			options = *r.seLinux
		}
		options.Level = level
		r.seLinux = &options
	}
	if c.FSGroup.Type == securityv1.FSGroupStrategyMustRunAs && len(r.fsGroup) == 0 {
		blocks, err := groups(namespace)
		if err != nil {
			return nil, err
		}
		// A volume has a single owning group: the first group allocated to the namespace.
		r.fsGroup = []securityv1.IDRange{{Min: blocks[0].Min, Max: blocks[0].Min}}
	}
	if c.SupplementalGroups.Type == securityv1.SupplementalGroupsStrategyMustRunAs && len(r.supplementalGroups) == 0 {
		blocks, err := groups(namespace)
		if err != nil {
			return nil, err
		}
		r.supplementalGroups = blocks
	}
	return r, nil
}

func missing(namespace *corev1.Namespace, annotation string) error {
	return fmt.Errorf("namespace %q has no annotation %s yet; the platform adds it after the namespace is created", namespace.Name, annotation)
}

// users returns the block of user IDs that is allocated to the namespace.
func users(namespace *corev1.Namespace) (securityv1.IDRange, error) {
	value := namespace.Annotations[securityv1.UIDRangeAnnotation]
	if value == "" {
		return securityv1.IDRange{}, missing(namespace, securityv1.UIDRangeAnnotation)
	}
	block, err := ParseBlock(value)
	if err != nil {
		return block, fmt.Errorf("parse annotation %s of namespace %q: %w", securityv1.UIDRangeAnnotation, namespace.Name, err)
	}
	return block, nil
}

// groups returns the blocks of group IDs in the namespace's annotation. If the annotation is
// missing, it returns the block of user IDs.
func groups(namespace *corev1.Namespace) ([]securityv1.IDRange, error) {
	value := namespace.Annotations[securityv1.SupplementalGroupsAnnotation]
	if value == "" {
		block, err := users(namespace)
		if err != nil {
			return nil, missing(namespace, securityv1.SupplementalGroupsAnnotation)
		}
		return []securityv1.IDRange{block}, nil
	}
	var blocks []securityv1.IDRange
	for text := range strings.SplitSeq(value, ",") {
		block, err := ParseBlock(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("parse annotation %s of namespace %q: %w", securityv1.SupplementalGroupsAnnotation, namespace.Name, err)
		}
		blocks = append(blocks, block)
	}
	return blocks, nil
}

// ParseBlock parses a block of IDs in the form `<start>/<length>` or `<start>-<end>`, where start
// and end are inclusive.
func ParseBlock(text string) (securityv1.IDRange, error) {
	start, length, byLength := strings.Cut(text, "/")
	end := ""
	if !byLength {
		var byEnd bool
		if start, end, byEnd = strings.Cut(text, "-"); !byEnd {
			return securityv1.IDRange{}, fmt.Errorf("block %q is neither <start>/<length> nor <start>-<end>", text)
		}
	}
	first, err := strconv.ParseUint(start, 10, 32)
	if err != nil {
		return securityv1.IDRange{}, fmt.Errorf("block %q does not start with an ID", text)
	}
	if byLength {
		count, err := strconv.ParseUint(length, 10, 32)
		if err != nil || count == 0 {
			return securityv1.IDRange{}, fmt.Errorf("block %q has no length of at least 1", text)
		}
		return securityv1.IDRange{Min: int64(first), Max: int64(first + count - 1)}, nil
	}
	last, err := strconv.ParseUint(end, 10, 32)
	if err != nil || last < first {
		return securityv1.IDRange{}, fmt.Errorf("block %q ends before it starts", text)
	}
	return securityv1.IDRange{Min: int64(first), Max: int64(last)}, nil
}

// contains reports whether any of the ranges contains id.
func contains(ranges []securityv1.IDRange, id int64) bool {
	for _, r := range ranges {
		if r.Min <= id && id <= r.Max {
			return true
		}
	}
	return false
}

// format returns ranges as text for messages, for example `1000-1009, 5-5`.
func format(ranges []securityv1.IDRange) string {
	texts := make([]string, 0, len(ranges))
	for _, r := range ranges {
		texts = append(texts, fmt.Sprintf("%d-%d", r.Min, r.Max))
	}
	return strings.Join(texts, ", ")
}
