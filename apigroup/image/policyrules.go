package image

import (
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/apigroup/image/record"
)

// candidate describes an image that an object uses, for the evaluation of the execution rules.
type candidate struct {
	name       string
	registry   string // part of the name; can be empty
	integrated bool   // the registry is the cluster's own
	image      *imagev1.Image
	ignored    []string // rules that do not apply in the object's namespace
}

// decide returns the reason why an image must not run, or "". If there are rules that accept
// images, at least one of them must match.
func (c policyConfig) decide(resource schema.GroupResource, desired candidate) string {
	accepting, accepted := false, false
	for _, rule := range c.ExecutionRules {
		if !slices.ContainsFunc(rule.OnResources, func(g groupResource) bool { return g.covers(resource) }) {
			continue
		}
		if !rule.IgnoreNamespaceOverride && slices.Contains(desired.ignored, rule.Name) {
			continue
		}
		accepting = accepting || !rule.Reject
		if rule.SkipOnResolutionFailure && desired.image == nil || !rule.matches(desired) {
			continue
		}
		if rule.Reject {
			return fmt.Sprintf("this image is prohibited by policy: rule %q rejects %s", rule.Name, desired.name)
		}
		accepted = true
	}
	if accepting && !accepted {
		return fmt.Sprintf("this image is prohibited by policy: no rule accepts %s", desired.name)
	}
	return ""
}

// matches reports whether an image meets all conditions of the rule.
func (r executionRule) matches(desired candidate) bool {
	if r.MatchIntegratedRegistry && !desired.integrated {
		return false
	}
	if len(r.MatchRegistries) > 0 && !slices.Contains(r.MatchRegistries, desired.registry) {
		return false
	}
	if len(r.MatchImageAnnotations)+len(r.MatchImageLabels)+len(r.MatchDockerImageLabels) == 0 {
		return true
	}
	if desired.image == nil {
		return false
	}
	for _, condition := range r.MatchImageAnnotations {
		if !condition.holds(desired.image.Annotations) {
			return false
		}
	}
	for _, text := range r.MatchImageLabels {
		selector, err := metav1.LabelSelectorAsSelector(&text)
		if err != nil || !selector.Matches(labels.Set(desired.image.Labels)) {
			return false
		}
	}
	if len(r.MatchDockerImageLabels) == 0 {
		return true
	}
	metadata, err := record.Metadata(desired.image)
	if err != nil || metadata.Config == nil {
		return false
	}
	return !slices.ContainsFunc(r.MatchDockerImageLabels, func(c valueCondition) bool { return !c.holds(metadata.Config.Labels) })
}

// registryIn returns the registry part of an image name, or "".
func registryIn(name string) string {
	first, _, ok := strings.Cut(name, "/")
	if ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		return first
	}
	return ""
}
