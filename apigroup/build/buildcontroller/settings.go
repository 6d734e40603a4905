package buildcontroller

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	buildv1 "github.com/openshift/api/build/v1"
	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/apiserver"
)

// Settings contains the administrator's settings for all builds.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, chapter 14; the configuration
// of the BuildDefaults and BuildOverrides plugins.
type Settings struct {
	// Defaults apply to fields that a build does not set. Overrides always apply.
	Defaults  legacyv1.BuildDefaultsConfig
	Overrides legacyv1.BuildOverridesConfig
}

// ReadSettings decodes the configuration of the BuildDefaults and BuildOverrides admission plugins
// from JSON or YAML. If an input is empty, no settings apply.
func ReadSettings(defaults, overrides []byte) (*Settings, error) {
	s := &Settings{}
	for _, plugin := range []struct {
		name    string
		content []byte
		config  any
	}{{"BuildDefaults", defaults, &s.Defaults}, {"BuildOverrides", overrides, &s.Overrides}} {
		if err := apiserver.DecodeConfig(bytes.NewReader(plugin.content), plugin.name+"Config", plugin.config); err != nil {
			return nil, fmt.Errorf("read admission plugin %s: %w", plugin.name, err)
		}
	}
	return s, nil
}

// SettingsStore stores the current settings.
type SettingsStore struct{ current atomic.Pointer[Settings] }

// NewSettingsStore returns a store with initial settings.
func NewSettingsStore(initial *Settings) *SettingsStore {
	s := &SettingsStore{}
	s.Replace(initial)
	return s
}

// Replace changes the settings for builds that start later.
func (s *SettingsStore) Replace(next *Settings) { s.current.Store(next) }

// applyTo applies the settings to the spec that the builder receives.
func (s *Settings) applyTo(spec *buildv1.BuildSpec) {
	if env := instantiate.Env(&spec.Strategy); env != nil {
		*env = instantiate.Override(s.Defaults.Env, withoutEmpty(*env, s.Defaults.Env))
	}
	if git := spec.Source.Git; git != nil {
		setDefault(&git.HTTPProxy, s.Defaults.GitHTTPProxy)
		setDefault(&git.HTTPSProxy, s.Defaults.GitHTTPSProxy)
		setDefault(&git.NoProxy, s.Defaults.GitNoProxy)
	}
	if source, defaults := spec.Strategy.SourceStrategy, s.Defaults.SourceStrategyDefaults; source != nil && source.Incremental == nil && defaults != nil {
		source.Incremental = defaults.Incremental
	}
	labels := withLabels(s.Defaults.ImageLabels, spec.Output.ImageLabels)
	spec.Output.ImageLabels = withLabels(labels, s.Overrides.ImageLabels)
	if spec.NodeSelector == nil {
		spec.NodeSelector = maps.Clone(s.Defaults.NodeSelector)
	}
	if len(s.Overrides.NodeSelector) > 0 {
		spec.NodeSelector = with(spec.NodeSelector, s.Overrides.NodeSelector)
	}
	spec.Resources.Requests = withResources(s.Defaults.Resources.Requests, spec.Resources.Requests)
	spec.Resources.Limits = withResources(s.Defaults.Resources.Limits, spec.Resources.Limits)
	if s.Overrides.ForcePull {
		forcePull(&spec.Strategy)
	}
}

// withoutEmpty removes an empty environment variable from env if defaults contains a value for the
// variable. The reason is that templates set a variable to "" if a parameter has no value.
// withoutEmpty keeps an empty proxy variable, which means that the build uses no proxy.
func withoutEmpty(env, defaults []corev1.EnvVar) []corev1.EnvVar {
	return slices.DeleteFunc(slices.Clone(env), func(v corev1.EnvVar) bool {
		return v.Value == "" && v.ValueFrom == nil && !strings.HasSuffix(strings.ToLower(v.Name), "_proxy") &&
			slices.ContainsFunc(defaults, func(other corev1.EnvVar) bool { return other.Name == v.Name })
	})
}

// applyToPod applies the settings to a build's pod.
func (s *Settings) applyToPod(pod *corev1.Pod) {
	pod.Annotations = with(with(s.Defaults.Annotations, pod.Annotations), s.Overrides.Annotations)
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, s.Overrides.Tolerations...)
}

func setDefault(value **string, defaultValue string) {
	if *value == nil && defaultValue != "" {
		*value = &defaultValue
	}
}

// with returns a map with the entries of both maps. The values in others take precedence over the
// values in entries.
func with(entries, others map[string]string) map[string]string {
	result := map[string]string{}
	maps.Copy(result, entries)
	maps.Copy(result, others)
	return result
}

func withResources(amounts, quantities corev1.ResourceList) corev1.ResourceList {
	if len(amounts) == 0 {
		return quantities
	}
	result := maps.Clone(amounts)
	maps.Copy(result, quantities)
	return result
}

func withLabels(labels, others []buildv1.ImageLabel) []buildv1.ImageLabel {
	result := slices.DeleteFunc(slices.Clone(labels), func(label buildv1.ImageLabel) bool {
		return slices.ContainsFunc(others, func(other buildv1.ImageLabel) bool { return other.Name == label.Name })
	})
	return append(result, others...)
}

func forcePull(strategy *buildv1.BuildStrategy) {
	switch {
	case strategy.DockerStrategy != nil:
		strategy.DockerStrategy.ForcePull = true
	case strategy.SourceStrategy != nil:
		strategy.SourceStrategy.ForcePull = true
	case strategy.CustomStrategy != nil:
		strategy.CustomStrategy.ForcePull = true
	}
}
