package image

import (
	"fmt"
	"io"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-platform/slipway/apiserver"
)

// PolicyName is the name of the admission plugin in the server configuration.
const PolicyName = "openshift.io/ImagePolicy"

// denyExecution is an image annotation. If its value is "true", pods and builds cannot use the
// image.
const denyExecution = "images.openshift.io/deny-execution"

// resolution defines whether image names are replaced with names that contain a digest.
type resolution string

const (
	doNotAttempt    resolution = "DoNotAttempt"
	attempt         resolution = "Attempt"
	attemptRewrite  resolution = "AttemptRewrite"
	required        resolution = "Required"
	requiredRewrite resolution = "RequiredRewrite"
)

func (r resolution) rewrites() bool { return r == attemptRewrite || r == requiredRewrite }
func (r resolution) requires() bool { return r == required || r == requiredRewrite }

// policyConfig is the plugin's configuration, which has the kind ImagePolicyConfig.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, 11.3.
type policyConfig struct {
	metav1.TypeMeta `json:",inline"`
	ResolveImages   resolution       `json:"resolveImages"`
	ExecutionRules  []executionRule  `json:"executionRules"`
	ResolutionRules []resolutionRule `json:"resolutionRules"`
}

// executionRule accepts or rejects images that meet all of its conditions.
type executionRule struct {
	Name                    string                 `json:"name"`
	OnResources             []groupResource        `json:"onResources"`
	Reject                  bool                   `json:"reject"`
	SkipOnResolutionFailure bool                   `json:"skipOnResolutionFailure"`
	IgnoreNamespaceOverride bool                   `json:"ignoreNamespaceOverride"`
	MatchIntegratedRegistry bool                   `json:"matchIntegratedRegistry"`
	MatchRegistries         []string               `json:"matchRegistries"`
	MatchImageAnnotations   []valueCondition       `json:"matchImageAnnotations"`
	MatchImageLabels        []metav1.LabelSelector `json:"matchImageLabels"`
	MatchDockerImageLabels  []valueCondition       `json:"matchDockerImageLabels"`
}

// resolutionRule defines how image names in a resource are resolved.
type resolutionRule struct {
	TargetResource groupResource `json:"targetResource"`
	LocalNames     bool          `json:"localNames"`
	Policy         resolution    `json:"policy"`
}

type groupResource struct {
	Group    string `json:"group"`
	Resource string `json:"resource"`
}

// covers reports whether a rule for g applies to a resource. Originally, OpenShift's resources had
// no API group, so {resource: builds} matches builds in any OpenShift group.
func (g groupResource) covers(resource schema.GroupResource) bool {
	sameGroup := g.Group == resource.Group || g.Group == "" && strings.HasSuffix(resource.Group, ".openshift.io")
	return sameGroup && (g.Resource == "*" || g.Resource == resource.Resource)
}

// valueCondition requires that a key has the given value or, if Set is true, only that the key
// exists.
type valueCondition struct {
	Key   string `json:"key"`
	Set   bool   `json:"set"`
	Value string `json:"value"`
}

func (c valueCondition) holds(values map[string]string) bool {
	value, ok := values[c.Key]
	return ok && (c.Set || value == c.Value)
}

// defaultPolicy returns a policy that resolves the names of the project's image streams, and
// rejects images that an administrator has annotated with denyExecution.
func defaultPolicy() policyConfig {
	config := policyConfig{
		ResolveImages: doNotAttempt,
		ExecutionRules: []executionRule{{
			Name: "execution-denied", OnResources: []groupResource{{Resource: "pods"}, {Group: "build.openshift.io", Resource: "builds"}}, Reject: true,
			MatchImageAnnotations: []valueCondition{{Key: denyExecution, Value: "true"}}, SkipOnResolutionFailure: true,
		}},
	}
	config.completeLocalNames()
	return config
}

// completeLocalNames adds the built-in resolution rules, unless the configuration has rules for the
// same resources. For builds, resolveImages applies only if an execution rule applies to builds.
// Workloads have the same built-in rules as pods.
func (c *policyConfig) completeLocalNames() {
	for _, resource := range []groupResource{
		{"", "pods"}, {"", "replicationcontrollers"}, {"apps", "daemonsets"}, {"apps", "deployments"}, {"apps", "replicasets"}, {"apps", "statefulsets"},
		{"batch", "jobs"}, {"batch", "cronjobs"}, {"build.openshift.io", "builds"},
	} {
		if !slices.ContainsFunc(c.ResolutionRules, func(r resolutionRule) bool {
			return r.TargetResource.covers(schema.GroupResource(resource))
		}) {
			rule := resolutionRule{TargetResource: resource, LocalNames: true}
			if resource.Resource == "builds" && !c.executes(schema.GroupResource(resource)) {
				rule.Policy = doNotAttempt
			}
			c.ResolutionRules = append(c.ResolutionRules, rule)
		}
	}
}

// executes reports whether an execution rule applies to a resource.
func (c *policyConfig) executes(resource schema.GroupResource) bool {
	return slices.ContainsFunc(c.ExecutionRules, func(r executionRule) bool {
		return slices.ContainsFunc(r.OnResources, func(g groupResource) bool { return g.covers(resource) })
	})
}

// readPolicy reads the configuration. If there is no configuration, it returns the default policy.
func readPolicy(reader io.Reader) (policyConfig, error) {
	var config policyConfig
	if err := apiserver.DecodeConfig(reader, "ImagePolicyConfig", &config); err != nil {
		return config, fmt.Errorf("read configuration of %s: %w", PolicyName, err)
	}
	if config.Kind == "" && config.ExecutionRules == nil && config.ResolutionRules == nil && config.ResolveImages == "" {
		return defaultPolicy(), nil
	}
	allowed := []resolution{"", doNotAttempt, attempt, attemptRewrite, required, requiredRewrite}
	for _, rule := range append(config.ResolutionRules, resolutionRule{Policy: config.ResolveImages}) {
		if !slices.Contains(allowed, rule.Policy) {
			return config, fmt.Errorf("read configuration of %s: policy %q must be one of %q", PolicyName, rule.Policy, allowed[1:])
		}
	}
	for i := range config.ExecutionRules {
		if rule := &config.ExecutionRules[i]; len(rule.OnResources) == 0 {
			rule.OnResources = []groupResource{{Resource: "pods"}}
		}
		for _, selector := range config.ExecutionRules[i].MatchImageLabels {
			if _, err := metav1.LabelSelectorAsSelector(&selector); err != nil {
				return config, fmt.Errorf("read configuration of %s: rule %q: %w", PolicyName, config.ExecutionRules[i].Name, err)
			}
		}
	}
	config.completeLocalNames()
	return config, nil
}

// rule returns the first resolution rule that covers a resource. Without a rule, the resource's
// names are not resolved.
func (c policyConfig) rule(resource schema.GroupResource) resolutionRule {
	for _, rule := range c.ResolutionRules {
		if !rule.TargetResource.covers(resource) {
			continue
		}
		if rule.Policy == "" {
			rule.Policy = c.ResolveImages
		}
		return rule
	}
	return resolutionRule{Policy: doNotAttempt}
}
