// Package instantiate makes builds: from a configuration and a request, or as copies of earlier ones. It also says how builds are written down:
// what they and their pods are called and which labels and annotations they have. The API server, the controllers and the client share it;
// it does nothing itself.
//
// Source: OpenShift Container Platform 3.9 Architecture, 3.6.1 Builds; names, labels and annotations are those of OpenShift 3.11.
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

// Account is the service account of builds that name none.
const Account = "builder"

// AccountOf is the service account that a build, or those of a configuration, run as.
func AccountOf(spec *buildv1.CommonSpec) string {
	if spec.ServiceAccount == "" {
		return Account
	}
	return spec.ServiceAccount
}

// UserOf is whom builds of a specification act as in a project, with the groups that requests of the account have: what everybody may use, builds may.
func UserOf(project string, spec *buildv1.CommonSpec) user.Info {
	account := serviceaccount.UserInfo(project, AccountOf(spec), "")
	return &user.DefaultInfo{Name: account.GetName(), Groups: append(account.GetGroups(), user.AllAuthenticated)}
}

// PodName is what a build's pod is called.
func PodName(build string) string {
	const suffix = "-build"
	if len(build)+len(suffix) <= validation.DNS1123SubdomainMaxLength {
		return build + suffix
	}
	sum := sha256.Sum256([]byte(build))
	distinct := "-" + hex.EncodeToString(sum[:4]) + suffix
	return build[:validation.DNS1123SubdomainMaxLength-len(distinct)] + distinct
}

// Label is a name as the value of a label, which may be shorter.
func Label(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-._")
}

// Selector selects the builds of a configuration, and those of others whose names begin alike: ConfigOf tells them apart.
func Selector(config string) labels.Selector {
	return labels.SelectorFromSet(labels.Set{buildv1.BuildConfigLabel: Label(config)})
}

// ConfigOf is the configuration of a build, empty for one that has none.
func ConfigOf(build *buildv1.Build) string {
	if build.Status.Config != nil {
		return build.Status.Config.Name
	}
	return build.Annotations[buildv1.BuildConfigAnnotation]
}

// Number is which build of its configuration one is, 0 if it has none.
func Number(build *buildv1.Build) int64 {
	number, _ := strconv.ParseInt(build.Annotations[buildv1.BuildNumberAnnotation], 10, 64) // 0 is none
	return number
}

// Policy says which builds of a configuration run together.
func Policy(build *buildv1.Build) buildv1.BuildRunPolicy {
	if policy := build.Labels[buildv1.BuildRunPolicyLabel]; policy != "" {
		return buildv1.BuildRunPolicy(policy)
	}
	return buildv1.BuildRunPolicySerial
}

// Ended says whether a build is over, one way or another.
func Ended(build *buildv1.Build) bool {
	switch build.Status.Phase {
	case buildv1.BuildPhaseComplete, buildv1.BuildPhaseFailed, buildv1.BuildPhaseError, buildv1.BuildPhaseCancelled:
		return true
	}
	return false
}

// Paused says whether a configuration starts no builds.
func Paused(config *buildv1.BuildConfig) bool {
	return strings.EqualFold(config.Annotations[buildv1.BuildConfigPausedAnnotation], "true")
}

// Build makes the next build of a configuration, whose last version has been counted up for it. images gives what the references in the
// specification mean now.
func Build(config *buildv1.BuildConfig, request *buildv1.BuildRequest, images Images) (*buildv1.Build, error) {
	version := strconv.FormatInt(config.Status.LastVersion, 10)
	build := &buildv1.Build{
		ObjectMeta: metav1.ObjectMeta{
			Name: config.Name + "-" + version, Namespace: config.Namespace,
			Labels: merged(request.Labels, config.Labels, map[string]string{
				buildv1.BuildConfigLabelDeprecated: Label(config.Name),
				buildv1.BuildConfigLabel:           Label(config.Name),
				buildv1.BuildRunPolicyLabel:        string(config.Spec.RunPolicy),
			}),
			Annotations: merged(request.Annotations, map[string]string{
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
	takeSource(spec, request)
	takeOptions(spec, request)
	if err := resolve(config, spec, images); err != nil {
		return nil, err
	}
	return build, nil
}

// takeSource replaces the source by that of a request. Without one in the request, a binary source has nothing to give.
func takeSource(spec *buildv1.BuildSpec, request *buildv1.BuildRequest) {
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

// takeOptions puts a request's variables and options into the strategy.
func takeOptions(spec *buildv1.BuildSpec, request *buildv1.BuildRequest) {
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

// Env are the variables of a strategy, nil for no strategy.
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

// Override gives variables with others in place of those of the same names.
func Override(env, with []corev1.EnvVar) []corev1.EnvVar {
	result := slices.DeleteFunc(slices.Clone(env), func(old corev1.EnvVar) bool {
		return slices.ContainsFunc(with, func(v corev1.EnvVar) bool { return v.Name == old.Name })
	})
	return append(result, with...)
}

// Clone makes a build that does again what an earlier one did. number is that of the configuration's new build; 0 is a build without configuration, which
// is called after the earlier one.
func Clone(old *buildv1.Build, request *buildv1.BuildRequest, number int64, suffix string) *buildv1.Build {
	build := &buildv1.Build{
		ObjectMeta: metav1.ObjectMeta{
			Name: old.Name + "-" + suffix, Namespace: old.Namespace, OwnerReferences: old.OwnerReferences,
			Labels: maps.Clone(old.Labels), Annotations: merged(old.Annotations, request.Annotations, map[string]string{buildv1.BuildCloneAnnotation: old.Name}),
		},
		Spec:   *old.Spec.DeepCopy(),
		Status: buildv1.BuildStatus{Phase: buildv1.BuildPhaseNew, Config: old.Status.Config},
	}
	delete(build.Annotations, buildv1.BuildPodNameAnnotation)
	if number > 0 {
		build.Name = fmt.Sprintf("%s-%d", ConfigOf(old), number)
		build.Annotations[buildv1.BuildNumberAnnotation] = strconv.FormatInt(number, 10)
	}
	build.Spec.TriggeredBy = slices.Clone(request.TriggeredBy)
	takeOptions(&build.Spec, request)
	return build
}

// merged is a map with the entries of several; the last one wins.
func merged(all ...map[string]string) map[string]string {
	result := map[string]string{}
	for _, one := range all {
		maps.Copy(result, one)
	}
	return result
}
