// Package instantiate creates builds, either from a configuration and a request, or as clones of
// earlier builds. It also defines the names, labels and annotations of builds and their pods. The
// API server, the controllers and the client share this package. It transforms objects and sends no
// requests.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds; names, labels and
// annotations are the same as in OpenShift 3.11.
package instantiate

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// Account is the builds' default service account.
const Account = "builder"

// AccountOf returns a build's service account.
func AccountOf(spec *buildv1.CommonSpec) string {
	if spec.ServiceAccount == "" {
		return Account
	}
	return spec.ServiceAccount
}

// UserOf returns the user, with groups, that represents a build's service account in authorization
// checks.
func UserOf(project string, spec *buildv1.CommonSpec) user.Info {
	account := serviceaccount.UserInfo(project, AccountOf(spec), "")
	return &user.DefaultInfo{Name: account.GetName(), Groups: append(account.GetGroups(), user.AllAuthenticated)}
}

// PodName returns the name of a build's pod. It shortens the name if it would be too long.
func PodName(build string) string {
	const suffix = "-build"
	if len(build)+len(suffix) <= validation.DNS1123SubdomainMaxLength {
		return build + suffix
	}
	sum := sha256.Sum256([]byte(build))
	distinct := "-" + hex.EncodeToString(sum[:4]) + suffix
	return build[:validation.DNS1123SubdomainMaxLength-len(distinct)] + distinct
}

// Label truncates a name so that it is a valid label value.
func Label(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-._")
}

// Selector selects the builds of a configuration. It can also select builds of other configurations
// that have the same truncated name. ConfigOf distinguishes them.
func Selector(config string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{buildv1.BuildConfigLabel: Label(config)})
}

// ConfigOf returns the name of a build's configuration, or "" if the build has no configuration.
func ConfigOf(build *buildv1.Build) string {
	if build.Status.Config != nil {
		return build.Status.Config.Name
	}
	return build.Annotations[buildv1.BuildConfigAnnotation]
}

// Number returns a build's number within its configuration, or 0 if the build has no number. If
// Jenkins' sync plugin has removed the annotation that contains the number, Number parses the
// build's name.
func Number(build *buildv1.Build) int64 {
	text, ok := build.Annotations[buildv1.BuildNumberAnnotation]
	if !ok {
		text, _ = strings.CutPrefix(build.Name, ConfigOf(build)+"-")
	}
	// ParseInt returns 0 if the text is not a number.
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}

// Policy returns a build's run policy.
func Policy(build *buildv1.Build) buildv1.BuildRunPolicy {
	if policy := build.Labels[buildv1.BuildRunPolicyLabel]; policy != "" {
		return buildv1.BuildRunPolicy(policy)
	}
	return buildv1.BuildRunPolicySerial
}

// Ended reports whether a build has finished.
func Ended(build *buildv1.Build) bool {
	switch build.Status.Phase {
	case buildv1.BuildPhaseComplete, buildv1.BuildPhaseFailed, buildv1.BuildPhaseError, buildv1.BuildPhaseCancelled:
		return true
	}
	return false
}

// Paused reports whether a configuration is paused.
func Paused(config *buildv1.BuildConfig) bool {
	return strings.EqualFold(config.Annotations[buildv1.BuildConfigPausedAnnotation], "true")
}

// Build returns a configuration's next build. The caller has already incremented LastVersion.
// images resolves the image references in the spec.
func Build(config *buildv1.BuildConfig, request *buildv1.BuildRequest, images Images) (*buildv1.Build, error) {
	version := strconv.FormatInt(config.Status.LastVersion, 10)
	build := &buildv1.Build{
		ObjectMeta: metav1.ObjectMeta{
			Name: config.Name + "-" + version, Namespace: config.Namespace,
			Labels: mergeMaps(request.Labels, config.Labels, map[string]string{
				buildv1.BuildConfigLabelDeprecated: Label(config.Name),
				buildv1.BuildConfigLabel:           Label(config.Name),
				buildv1.BuildRunPolicyLabel:        string(config.Spec.RunPolicy),
			}),
			Annotations: mergeMaps(request.Annotations, map[string]string{
				buildv1.BuildNumberAnnotation: version,
				buildv1.BuildConfigAnnotation: config.Name,
			}),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(config, buildv1.GroupVersion.WithKind("BuildConfig"))},
		},
		Spec: buildv1.BuildSpec{CommonSpec: *config.Spec.CommonSpec.DeepCopy(), TriggeredBy: slices.Clone(request.TriggeredBy)},
		Status: buildv1.BuildStatus{
			Phase:  buildv1.BuildPhaseNew,
			Config: &corev1.ObjectReference{Kind: "BuildConfig", Namespace: config.Namespace, Name: config.Name},
		},
	}
	spec := &build.Spec
	spec.ServiceAccount = AccountOf(&spec.CommonSpec)
	applySource(spec, request)
	applyOptions(spec, request)
	if err := resolve(config, spec, images); err != nil {
		return nil, err
	}
	return build, nil
}

// applySource applies a request's revision and binary source. If the request has no binary source,
// applySource removes the configuration's binary source.
func applySource(spec *buildv1.BuildSpec, request *buildv1.BuildRequest) {
	if request.Revision != nil {
		spec.Revision = request.Revision.DeepCopy()
	}
	source := &spec.Source
	if request.Binary == nil {
		source.Binary = nil
		return
	}
	source.Git, source.Binary, source.Type = nil, request.Binary.DeepCopy(), buildv1.BuildSourceBinary
	if source.Dockerfile != nil && request.Binary.AsFile == "Dockerfile" {
		source.Dockerfile = nil
	}
}

// applyOptions applies a request's environment variables and options to a build's strategy.
func applyOptions(spec *buildv1.BuildSpec, request *buildv1.BuildRequest) {
	if env := Env(&spec.Strategy); env != nil {
		*env = Override(*env, request.Env)
	}
	if docker, options := spec.Strategy.DockerStrategy, request.DockerStrategyOptions; docker != nil && options != nil {
		docker.BuildArgs = Override(docker.BuildArgs, options.BuildArgs)
		if options.NoCache != nil {
			docker.NoCache = *options.NoCache
		}
	}
	if source, options := spec.Strategy.SourceStrategy, request.SourceStrategyOptions; source != nil && options != nil && options.Incremental != nil {
		source.Incremental = options.Incremental
	}
}

// Env returns a pointer to a strategy's environment variables, or nil if there is no strategy.
func Env(strategy *buildv1.BuildStrategy) *[]corev1.EnvVar {
	switch {
	case strategy.DockerStrategy != nil:
		return &strategy.DockerStrategy.Env
	case strategy.SourceStrategy != nil:
		return &strategy.SourceStrategy.Env
	case strategy.CustomStrategy != nil:
		return &strategy.CustomStrategy.Env
	case strategy.JenkinsPipelineStrategy != nil:
		return &strategy.JenkinsPipelineStrategy.Env
	}
	return nil
}

// Override returns the variables of env and with. A variable of with replaces the variable of the
// same name in env.
func Override(env, with []corev1.EnvVar) []corev1.EnvVar {
	result := slices.DeleteFunc(slices.Clone(env), func(old corev1.EnvVar) bool {
		return slices.ContainsFunc(with, func(v corev1.EnvVar) bool { return v.Name == old.Name })
	})
	return append(result, with...)
}

// Clone returns a build with the inputs of an earlier build. number is the configuration's next
// build number, or 0 if the build has no configuration. In that case, the clone's name is the
// earlier build's name with a suffix.
func Clone(old *buildv1.Build, request *buildv1.BuildRequest, number int64, suffix string) *buildv1.Build {
	build := &buildv1.Build{
		ObjectMeta: metav1.ObjectMeta{
			Name: old.Name + "-" + suffix, Namespace: old.Namespace, OwnerReferences: old.OwnerReferences,
			Labels: maps.Clone(old.Labels), Annotations: mergeMaps(old.Annotations, request.Annotations, map[string]string{buildv1.BuildCloneAnnotation: old.Name}),
		},
		Spec:   *old.Spec.DeepCopy(),
		Status: buildv1.BuildStatus{Phase: buildv1.BuildPhaseNew, Config: old.Status.Config},
	}
	for _, name := range []string{buildv1.BuildPodNameAnnotation, buildv1.BuildJenkinsStatusJSONAnnotation, "openshift.io/jenkins-pending-input-actions-json"} {
		delete(build.Annotations, name)
	}
	if number > 0 {
		build.Name = fmt.Sprintf("%s-%d", ConfigOf(old), number)
		build.Annotations[buildv1.BuildNumberAnnotation] = strconv.FormatInt(number, 10)
	}
	build.Spec.TriggeredBy = slices.Clone(request.TriggeredBy)
	applyOptions(&build.Spec, request)
	return build
}

// RemoveAnswers removes the answers to a pipeline's inputs from a new build. Users who are only
// allowed to start builds must not add answers, because an answer requires permission to update
// builds.
func RemoveAnswers(build *buildv1.Build) {
	maps.DeleteFunc(build.Annotations, func(name, _ string) bool { return strings.HasPrefix(name, "pipeline.slipway.io/") })
}

// mergeMaps returns a map with the entries of all maps. Later maps take precedence over earlier
// maps.
func mergeMaps(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, m := range all {
		maps.Copy(result, m)
	}
	return result
}
