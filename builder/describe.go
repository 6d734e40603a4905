package builder

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/moby/buildkit/exporter/containerimage/exptypes"
	gateway "github.com/moby/buildkit/frontend/gateway/client"
	dockerspec "github.com/moby/docker-image-spec/specs-go/v1"

	"github.com/slipway-platform/slipway/builder/source"
)

// describe adds labels and environment variables that describe the build to an image's
// configuration. It also adds the labels that the build's output specifies.
//
// Source: OpenShift Container Platform 3.11 Developer Guide, output image environment variables and
// labels.
func (r *run) describe(result *gateway.Result) error {
	config, err := configOf(result)
	if err != nil {
		return err
	}
	if config.Config.Labels == nil {
		config.Config.Labels = map[string]string{}
	}
	for name, text := range r.labels() {
		config.Config.Labels[name] = text
	}
	for _, variable := range r.variables() {
		config.Config.Env = setVariable(config.Config.Env, variable[0], variable[1])
	}
	return setConfig(result, config)
}

// configOf decodes the image configuration in a build result.
func configOf(result *gateway.Result) (dockerspec.DockerOCIImage, error) {
	var config dockerspec.DockerOCIImage
	if err := json.Unmarshal(result.Metadata[exptypes.ExporterImageConfigKey], &config); err != nil {
		return config, fmt.Errorf("read image configuration: %w", err)
	}
	return config, nil
}

func setConfig(result *gateway.Result, config dockerspec.DockerOCIImage) error {
	data, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("write image configuration: %w", err)
	}
	result.AddMeta(exptypes.ExporterImageConfigKey, data)
	return nil
}

// setVariable sets an environment variable in env.
func setVariable(env []string, name, text string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(old string) bool { return strings.HasPrefix(old, name+"=") })
	return append(env, name+"="+text)
}

// variables returns the names and values of the environment variables that describe the build.
func (r *run) variables() (list [][2]string) {
	add := func(name, text string) {
		if text != "" {
			list = append(list, [2]string{name, text})
		}
	}
	add("OPENSHIFT_BUILD_NAME", r.Build.Name)
	add("OPENSHIFT_BUILD_NAMESPACE", r.Build.Namespace)
	if git := r.Build.Spec.Source.Git; git != nil {
		add("OPENSHIFT_BUILD_SOURCE", source.Anonymous(git.URI))
		add("OPENSHIFT_BUILD_REFERENCE", git.Ref)
	}
	if revision := r.Build.Spec.Revision; revision != nil && revision.Git != nil {
		add("OPENSHIFT_BUILD_COMMIT", revision.Git.Commit)
	}
	return list
}

// labelPrefix is the prefix of the labels that describe a build.
const labelPrefix = "io.openshift.build."

func (r *run) labels() map[string]string {
	labels := map[string]string{labelPrefix + "name": r.Build.Name, labelPrefix + "namespace": r.Build.Namespace}
	add := func(name, text string) {
		if text != "" {
			labels[labelPrefix+name] = text
		}
	}
	if git := r.Build.Spec.Source.Git; git != nil {
		add("source-location", source.Anonymous(git.URI))
		add("commit.ref", git.Ref)
		add("source-context-dir", r.Build.Spec.Source.ContextDir)
	}
	if revision := r.Build.Spec.Revision; revision != nil && revision.Git != nil {
		add("commit.id", revision.Git.Commit)
		add("commit.author", fmt.Sprintf("%s <%s>", revision.Git.Author.Name, revision.Git.Author.Email))
		add("commit.message", revision.Git.Message)
	}
	for _, label := range r.Build.Spec.Output.ImageLabels {
		labels[label.Name] = label.Value
	}
	return labels
}
