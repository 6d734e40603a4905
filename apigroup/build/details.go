package build

import (
	"context"
	"fmt"

	buildv1 "github.com/openshift/api/build/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/slipway-platform/slipway/apigroup/build/generate"
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
	account := build.Spec.ServiceAccount
	if account == "" {
		account = generate.Account
	}
	pod := who.GetExtra()[serviceaccount.PodNameKey]
	return who.GetName() == serviceaccount.MakeUsername(build.Namespace, account) && len(pod) == 1 && pod[0] == generate.PodName(build.Name)
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
	next.Status.Reason, next.Status.Message = status.Reason, status.Message
	return next
}
