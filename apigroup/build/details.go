package build

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
)

// details is the subresource builds/details: what a build's pod reports while it runs, and nobody else.
type details struct{ starter }

var _ rest.Updater = &details{}

// New makes an empty build.
func (*details) New() runtime.Object { return &buildv1.Build{} }

// Destroy has nothing to give back: the store is the builds'.
func (*details) Destroy() {}

// Update takes revision, output, stages, reason and message of a report. Everything else stays.
func (d *details) Update(ctx context.Context, name string, sent rest.UpdatedObjectInfo, _ rest.ValidateObjectFunc, _ rest.ValidateObjectUpdateFunc, _ bool, options *metav1.UpdateOptions) (runtime.Object, bool, error) {
	return d.store("builds").Update(ctx, name, rest.DefaultUpdatedObjectInfo(nil,
		func(ctx context.Context, _, stored runtime.Object) (runtime.Object, error) {
			current := stored.(*buildv1.Build)
			if err := reports(ctx, current); err != nil {
				return nil, err
			}
			reported, err := sent.UpdatedObject(ctx, current.DeepCopy())
			if err != nil {
				return nil, err
			}
			report, ok := reported.(*buildv1.Build)
			if !ok {
				return nil, errors.NewBadRequest(fmt.Sprintf("the body is a %T, want a Build", reported))
			}
			if problems := bounded(report); len(problems) > 0 {
				return nil, errors.NewInvalid(buildv1.SchemeGroupVersion.WithKind("Build").GroupKind(), name, problems)
			}
			return withReport(current, report), nil
		}), rest.ValidateAllObjectFunc, rest.ValidateAllObjectUpdateFunc, false, options)
}

// reports says whether the user of a request is the pod of a build that runs.
func reports(ctx context.Context, build *buildv1.Build) error {
	refuse := func(why string) error {
		return errors.NewForbidden(buildv1.Resource("builds/details"), build.Name, fmt.Errorf("%s", why))
	}
	who, ok := request.UserFrom(ctx)
	switch {
	case !ok || !isPodOf(who, build):
		return refuse("only the build's own pod reports about it")
	case build.Status.Phase == buildv1.BuildPhasePending || build.Status.Phase == buildv1.BuildPhaseRunning:
		return nil
	}
	return refuse(fmt.Sprintf("the build is %s and not running", build.Status.Phase))
}

// isPodOf says whether a user is the service account of a build, with a token that was made for the build's pod.
func isPodOf(who user.Info, build *buildv1.Build) bool {
	account := instantiate.AccountOf(&build.Spec.CommonSpec)
	pod := who.GetExtra()[serviceaccount.PodNameKey]
	return who.GetName() == serviceaccount.MakeUsername(build.Namespace, account) && len(pod) == 1 && pod[0] == instantiate.PodName(build.Name)
}

// withReport is a build with what its pod reports.
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
	if !current.Status.Cancelled { // why it is to end stands there
		next.Status.Reason, next.Status.Message = status.Reason, status.Message
	}
	return next
}

// The most that a report may have: characters of a text, stages, and steps of a stage. A build has six stages, and few steps of each.
const mostText, mostStages, mostSteps = 4096, 16, 256

// bounded gives what is too long in a report: who may build may make his own builder, and a Build is read by everybody who lists builds.
func bounded(report *buildv1.Build) (problems field.ErrorList) {
	status := field.NewPath("status")
	text := func(at *field.Path, values ...string) {
		for _, value := range values {
			if len(value) > mostText {
				problems = append(problems, field.TooLong(at, "", mostText))
			}
		}
	}
	text(status.Child("message"), string(report.Status.Reason), report.Status.Message)
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
	if len(report.Status.Stages) > mostStages {
		return append(problems, field.TooMany(stages, len(report.Status.Stages), mostStages))
	}
	for i, stage := range report.Status.Stages {
		if len(stage.Steps) > mostSteps {
			problems = append(problems, field.TooMany(stages.Index(i).Child("steps"), len(stage.Steps), mostSteps))
			continue
		}
		text(stages.Index(i), string(stage.Name))
		for _, step := range stage.Steps {
			text(stages.Index(i).Child("steps"), string(step.Name))
		}
	}
	return problems
}
