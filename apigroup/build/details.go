package build

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/internal/buildpod"
)

// details is the builds/details subresource. Only a running build's pod can update it.
type details struct{ buildStore }

var _ rest.Updater = &details{}

// New implements rest.Storage.
func (*details) New() runtime.Object { return &buildv1.Build{} }

// Destroy is a no-op, because the builds resource destroys the store.
func (*details) Destroy() {}

// Update copies the revision, output, stages, reason and message from the request's build, which is
// the builder's report, to the stored build. For a pipeline, it also copies annotations. It ignores
// all other fields.
func (d *details) Update(ctx context.Context, name string, info rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return d.store("builds").Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil,
		func(ctx context.Context, _, existing runtime.Object) (runtime.Object, error) {
			current := existing.(*buildv1.Build)
			pod, err := d.pod(ctx, current)
			if err != nil {
				return nil, err
			}
			if err := checkReporter(ctx, current, pod); err != nil {
				return nil, err
			}
			object, err := info.UpdatedObject(ctx, current.DeepCopy())
			if err != nil {
				return nil, err
			}
			report, ok := object.(*buildv1.Build)
			if !ok {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("the body is a %T, must be a Build", object))
			}
			if errs := validateReport(report); len(errs) > 0 {
				return nil, apierrors.NewInvalid(buildv1.SchemeGroupVersion.WithKind("Build").GroupKind(), name, errs)
			}
			return withReport(current, report), nil
		}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, options)
}

// pod returns the pod that has the name of a build's pod, or nil if no such pod exists.
func (d *details) pod(ctx context.Context, build *buildv1.Build) (*corev1.Pod, error) {
	pod, err := d.deps.Kube.CoreV1().Pods(build.Namespace).Get(ctx, instantiate.PodName(build.Name), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return pod, err
}

// checkReporter returns an error unless the requesting user is the pod of a running build.
func checkReporter(ctx context.Context, build *buildv1.Build, pod *corev1.Pod) error {
	forbidden := func(msg string) error {
		return apierrors.NewForbidden(buildv1.Resource("builds/details"), build.Name, fmt.Errorf("%s", msg))
	}
	userInfo, ok := request.UserFrom(ctx)
	switch {
	case !ok || !isPodOf(userInfo, build, pod):
		return forbidden("only the build's pod can update its details")
	case build.Status.Phase == buildv1.BuildPhasePending || build.Status.Phase == buildv1.BuildPhaseRunning:
		return nil
	}
	return forbidden(fmt.Sprintf("the build is %s, not running", build.Status.Phase))
}

// isPodOf reports whether a request was authenticated with a token that is bound to the build's
// pod. The pod's name is not sufficient, because earlier and later pods can have the same name.
func isPodOf(userInfo user.Info, build *buildv1.Build, pod *corev1.Pod) bool {
	if pod == nil || !metav1.IsControlledBy(pod, build) {
		return false
	}
	account := instantiate.AccountOf(&build.Spec.CommonSpec)
	uid := userInfo.GetExtra()[serviceaccount.PodUIDKey]
	return userInfo.GetName() == serviceaccount.MakeUsername(build.Namespace, account) && len(uid) == 1 && uid[0] == string(pod.UID)
}

// pipelineAnnotations contains the annotations that a pipeline's pod can report, and their maximum
// sizes in bytes. As in Jenkins, the annotations contain the stages (at most about five hundred),
// the inputs that the pipeline is waiting for, and the test results.
var pipelineAnnotations = map[string]int{
	buildv1.BuildJenkinsStatusJSONAnnotation:          128 << 10,
	"openshift.io/jenkins-pending-input-actions-json": 64 << 10,
	buildpod.TestResultsAnnotation:                    buildpod.MaxTestResults,
}

// withReport returns a copy of a build that contains the report's values.
func withReport(current, report *buildv1.Build) *buildv1.Build {
	next := current.DeepCopy()
	if report.Spec.Revision != nil {
		next.Spec.Revision = report.Spec.Revision
	}
	status := report.Status
	if status.Output.To != nil {
		next.Status.Output = status.Output
	}
	if len(status.Stages) > 0 {
		next.Status.Stages = status.Stages
	}
	if current.Spec.Strategy.JenkinsPipelineStrategy != nil {
		for name := range pipelineAnnotations {
			if value, ok := report.Annotations[name]; ok {
				metav1.SetMetaDataAnnotation(&next.ObjectMeta, name, value)
			}
		}
	}
	if !current.Status.Cancelled { // keep the reason for the cancellation
		next.Status.Reason, next.Status.Message = status.Reason, status.Message
	}
	return next
}

// Limits on a report: the maximum length of a string in bytes, the maximum number of stages, and
// the maximum number of steps in a stage. A build has six stages with a few steps each.
const maxTextBytes, maxStages, maxSteps = 4096, 16, 256

// validateReport returns errors for strings and lists that are too long. A custom builder can send
// any report, and every user who lists builds receives it.
func validateReport(report *buildv1.Build) (errs field.ErrorList) {
	status := field.NewPath("status")
	text := func(at *field.Path, values ...string) {
		for _, value := range values {
			if len(value) > maxTextBytes {
				errs = append(errs, field.TooLong(at, "", maxTextBytes))
			}
		}
	}
	text(status.Child("message"), string(report.Status.Reason), report.Status.Message)
	for name, limit := range pipelineAnnotations {
		if len(report.Annotations[name]) > limit {
			errs = append(errs, field.TooLong(field.NewPath("metadata", "annotations").Key(name), "", limit))
		}
	}
	if to := report.Status.Output.To; to != nil {
		text(status.Child("output", "to", "imageDigest"), to.ImageDigest)
	}
	if revision := report.Spec.Revision; revision != nil {
		at := field.NewPath("spec", "revision")
		text(at.Child("type"), string(revision.Type))
		if git := revision.Git; git != nil {
			text(at.Child("git"), git.Commit, git.Message, git.Author.Name, git.Author.Email, git.Committer.Name, git.Committer.Email)
		}
	}
	stages := status.Child("stages")
	if len(report.Status.Stages) > maxStages {
		return append(errs, field.TooMany(stages, len(report.Status.Stages), maxStages))
	}
	for i, stage := range report.Status.Stages {
		if len(stage.Steps) > maxSteps {
			errs = append(errs, field.TooMany(stages.Index(i).Child("steps"), len(stage.Steps), maxSteps))
			continue
		}
		text(stages.Index(i), string(stage.Name))
		for _, step := range stage.Steps {
			text(stages.Index(i).Child("steps"), string(step.Name))
		}
	}
	return errs
}
